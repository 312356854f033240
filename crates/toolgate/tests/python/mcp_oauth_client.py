"""Connects the official MCP client to a running gate without a key: it finds the issuer by the metadata of the gate and gets a token."""

import os
import sys

import anyio
import httpx2
from mcp.client import Client
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client

URL, ISSUER = os.environ["TOOLGATE_URL"], os.environ["ISSUER"]


class Storage:
    """Keeps tokens for as long as the client lives."""

    tokens = client_info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client_info

    async def set_client_info(self, client_info):
        self.client_info = client_info


async def drive(mode):
    storage = Storage()
    auth = ClientCredentialsOAuthProvider(
        server_url=f"{URL}/mcp",
        storage=storage,
        client_id=os.environ["CLIENT_ID"],
        client_secret=os.environ["CLIENT_SECRET"],
        issuer=ISSUER,
    )
    http = httpx2.AsyncClient(auth=auth, trust_env=False, timeout=60)
    async with http, Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]
        assert "payments_charges__read" in tools, tools
        result = await client.call_tool("payments_charges__read", {"charge_id": "ch_7"})
        assert not result.is_error and result.structured_content["id"] == "ch_7", result
    assert storage.tokens is not None
    print(f"{mode}: done with scope {storage.tokens.scope}")


for mode in sys.argv[1:]:
    anyio.run(drive, mode)
