"""Drives a running gate with the official MCP client, in both eras: list, call, refusal, approval, revocation while connected."""

import sys
import threading

import anyio
import httpx2
from gate import KEY, MCP, approve_first, resume, revoke, suspend
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def drive(mode, version, end=suspend):
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, trust_env=False, timeout=60)
    async with http, Client(streamable_http_client(MCP, http_client=http), mode=mode) as client:
        assert client.protocol_version == version, client.protocol_version
        if client.server_info is not None:
            assert client.server_info.name == "toolgate", client.server_info
        tools = {tool.name: tool for tool in (await client.list_tools(cache_mode="bypass")).tools}
        assert {"bank_balance", "bank_transfer"} <= set(tools), list(tools)
        assert tools["bank_balance"].input_schema["type"] == "object"
        assert tools["bank_transfer"].annotations.destructive_hint is True

        result = await client.call_tool("bank_balance", {"amount": 1, "to": "ann"})
        assert not result.is_error and result.structured_content == {"done": True}, result

        refused = await client.call_tool("bank_balance", {"amount": [], "to": "ann"})
        assert refused.is_error and refused.meta["toolgate/code"] == "PARAMETERS_INVALID", refused
        try:
            await client.call_tool("bank_nothing", {})
        except MCPError as error:
            assert error.error.code == -32602, error
        else:
            raise AssertionError("an unknown tool was called")

        heard = []

        async def progressed(progress, total, message):
            heard.append(message)

        approver = threading.Thread(target=approve_first)
        approver.start()
        held = await client.call_tool("bank_transfer", {"amount": 5, "to": "ann"}, progress_callback=progressed)
        approver.join()
        assert not held.is_error and held.structured_content == {"done": True}, held
        assert heard and heard[0] == "waiting for approval", heard

        end()
        assert (await client.list_tools(cache_mode="bypass")).tools == []
        try:
            await client.call_tool("bank_balance", {"amount": 1, "to": "ann"})
        except MCPError as error:
            assert error.error.code == -32602, error
        else:
            raise AssertionError("a tool without a grant was called")
        if end is suspend:
            resume()
    print(f"{mode}: done")


async def main():
    await drive("2026-07-28", "2026-07-28")
    await drive("auto", "2026-07-28")
    await drive("legacy", "2025-11-25", end=revoke)


if __name__ == "__main__":
    anyio.run(main)
    sys.exit(0)
