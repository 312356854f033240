"""Drives a running gate with the clients that openapi-python-client has generated from its two documents."""

import os

from toolgate_client import AuthenticatedClient
from toolgate_client.api.agents import create_agent, list_agents, whoami
from toolgate_client.api.operations import show_metrics
from toolgate_client.models import Agent, AgentRequest, Error, StoredAgent
from toolgate_open_wop_client import AuthenticatedClient as OpenWopClient
from toolgate_open_wop_client.api.discovery import show_capabilities

URL, KEY = os.environ["TOOLGATE_URL"], os.environ["ADMIN_KEY"]
client = AuthenticatedClient(base_url=URL, token=KEY)
own = whoami.sync(client=client)
assert isinstance(own, Agent) and own.id == "admin", own
made = create_agent.sync(client=client, body=AgentRequest(id="generated"))
assert isinstance(made, StoredAgent) and made.id == "generated", made
assert "generated" in [agent.id for agent in list_agents.sync(client=client).agents]
refused = create_agent.sync(client=client, body=AgentRequest(id="generated"))
assert isinstance(refused, Error), refused
assert "toolgate_" in show_metrics.sync(client=client)
stranger = whoami.sync_detailed(client=AuthenticatedClient(base_url=URL, token="wrong"))
assert stranger.status_code == 401 and isinstance(stranger.parsed, Error), stranger
assert show_capabilities.sync(client=OpenWopClient(base_url=URL, token=KEY)) is not None
print("generated client: done")
