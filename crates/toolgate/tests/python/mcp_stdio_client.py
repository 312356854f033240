"""Drives `toolgate mcp --stdio` with the official MCP client, in both eras: as a bridge to a running gate, or embedded."""

import os
import sys
import threading

import anyio
import httpx2
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

KIND, ARGUMENTS = sys.argv[1], sys.argv[2:]
MODES = [("2026-07-28", "2026-07-28"), ("auto", "2026-07-28"), ("legacy", "2025-11-25")]


def server():
    environment = {"HOME": os.environ["HOME"]}
    return StdioServerParameters(command=os.environ["TOOLGATE"], args=["mcp", "--stdio", *ARGUMENTS], env=environment)


def api(key, method, path, body=None):
    headers = {"Authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=os.environ["TOOLGATE_GATE"], headers=headers, trust_env=False) as client:
        return client.request(method, path, json=body).raise_for_status().json()


def approve_first():
    approver = os.environ["APPROVER_KEY"]
    while not (pending := api(approver, "GET", "/api/v1/approvals?status=pending")["approvals"]):
        pass
    api(approver, "POST", f"/api/v1/approvals/{pending[0]['id']}/decide", {"decision": "approve"})


async def refused(client, name, arguments):
    try:
        await client.call_tool(name, arguments)
    except MCPError as error:
        assert error.error.code == -32602, error
    else:
        raise AssertionError(f"{name} was called")


async def bridge(client):
    tools = {tool.name: tool for tool in (await client.list_tools(cache_mode="bypass")).tools}
    assert {"bank_balance", "bank_transfer"} <= set(tools), list(tools)

    result = await client.call_tool("bank_balance", {"amount": 1, "to": "ann"})
    assert not result.is_error and result.structured_content == {"done": True}, result
    wrong = await client.call_tool("bank_balance", {"amount": [], "to": "ann"})
    assert wrong.is_error and wrong.meta["toolgate/code"] == "PARAMETERS_INVALID", wrong
    await refused(client, "bank_nothing", {})

    heard = []

    async def progressed(progress, total, message):
        heard.append(message)

    approver = threading.Thread(target=approve_first)
    approver.start()
    held = await client.call_tool("bank_transfer", {"amount": 5, "to": "ann"}, progress_callback=progressed)
    approver.join()
    assert not held.is_error and held.structured_content == {"done": True}, held
    assert heard and heard[0] == "waiting for approval", heard

    admin, grant = os.environ["ADMIN_KEY"], os.environ["GRANT"]
    api(admin, "PATCH", f"/api/v1/grants/{grant}/suspend", {"reason": "a test"})
    assert (await client.list_tools(cache_mode="bypass")).tools == []
    await refused(client, "bank_balance", {"amount": 1, "to": "ann"})
    api(admin, "PATCH", f"/api/v1/grants/{grant}/resume")


async def embedded(client):
    names = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
    assert any(name.endswith("Read") for name in names) and any(name.endswith("Grep") for name in names), names
    read = next(name for name in names if name.endswith("Read"))
    result = await client.call_tool(read, {"file_path": "notes.txt"})
    assert not result.is_error and "kept" in result.content[0].text, result
    await refused(client, "nothing", {})


async def main():
    drive = {"bridge": bridge, "embedded": embedded}[KIND]
    for mode, version in MODES:
        async with Client(stdio_client(server()), mode=mode) as client:
            assert client.protocol_version == version, client.protocol_version
            await drive(client)
        print(f"{mode}: done")


if __name__ == "__main__":
    anyio.run(main)
