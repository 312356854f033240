"""The developer experience of RFC-0014 §11: tools are discovered and called without a word about vaults and grants."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from gate import SECRET, TOKEN, stripe
from toolgate import Client
from toolgate.exceptions import (
    AuthenticationError,
    GrantExpiredError,
    GrantNotFoundError,
    GrantParameterError,
    GrantRateLimitError,
    GrantScopeError,
    GrantSuspendedError,
    ParametersError,
    ServiceError,
    ToolNotFoundError,
    ToolProxyError,
)


def test_tools_are_listed_with_the_grants_that_allow_them(world, connect):
    name, key = world.agent(["charges.read", "charges.create"])
    client = connect(key)
    tools = {tool.tool: tool for tool in client.tools.list()}
    assert sorted(tools) == ["charges.create", "charges.read"]
    read = tools["charges.read"]
    assert (read.service, read.name, read.alias) == ("stripe", "stripe.charges.read", "stripe_charges__read")
    assert (read.source, read.safety_tier, read.context.task_id) == ("direct", "write", None)
    assert read.parameters["required"] == ["charge_id"]
    assert client.tools.list(service="stripe") and not client.tools.list(service="github")
    (grant,) = client.tools.grants()
    assert grant.id == read.grant_id
    assert grant.agent_id == name == client.agent()
    assert grant.scopes == ("charges.create", "charges.read")
    assert grant.created_at.utcoffset() is not None


@pytest.mark.parametrize(
    "named",
    [("stripe", "charges.read"), ("stripe.charges.read",), ("charges.read",), ("stripe_charges__read",)],
)
def test_a_tool_is_called_by_service_and_tool_or_by_one_name(world, connect, named):
    client = connect(world.agent()[1])
    result = client.tools.invoke(*named, parameters={"charge_id": "ch_abc123"})
    assert result == {"id": "ch_abc123", "currency": "usd"}


def test_a_call_says_what_it_cost_and_the_secret_is_nowhere(world, connect):
    client = connect(world.agent()[1])
    called = client.tools.call("stripe", "charges.create", parameters={"amount": 2500, "currency": "usd"})
    assert called.result["amount"] == 2500
    assert SECRET not in repr(called)
    assert called.cost.estimated_cost_usd == Decimal("0.02")
    assert called.tool_name == "stripe.charges.create"
    assert called.invocation_id.startswith("inv_") and not called.replayed
    record = world.admin.ask("GET", f"/invocations/{called.invocation_id}")
    assert record["status"] == "success"
    assert record["idempotency_key"].startswith("py-")


def test_a_grant_can_be_chosen(world, connect):
    name, key = world.agent(["charges.read"])
    other = world.admin.grant(world.credential, name, ["charges.read", "charges.create"])
    client = connect(key)
    assert {grant.id for grant in client.tools.grants(service="stripe")} > {other}
    called = client.tools.call("stripe", "charges.read", parameters={"charge_id": "ch_1"}, grant_id=other)
    assert called.grant_id == other
    called = client.tools.call("stripe", "charges.read", parameters={"charge_id": "ch_1"})
    assert called.grant_id != other


def test_a_grant_is_chosen_by_its_environment(world, connect):
    name, key = world.agent(["charges.read"])
    production = world.admin.credential(stripe(), world.service.url, ["charges.read"], environment="production")
    world.admin.grant(production, name, ["charges.read"])
    client = connect(key)
    grants = client.tools.grants()
    prod_grant = next(g for g in grants if g.metadata.get("environment") == "production")
    result = client.tools.invoke("stripe", "charges.read", parameters={"charge_id": "ch_abc"}, grant_id=prod_grant.id)
    assert result["id"] == "ch_abc"
    assert prod_grant.credential_id == production
    assert [grant.metadata for grant in grants] == [{}, {"environment": "production"}]


def test_the_same_key_is_executed_once(world, connect):
    client = connect(world.agent()[1])
    options = {"parameters": {"amount": 3, "currency": "eur"}, "idempotency_key": "order-1"}
    first = client.tools.call("stripe", "charges.create", **options)
    second = client.tools.call("stripe", "charges.create", **options)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.result == second.result


def test_the_context_of_a_call_is_recorded(world, connect):
    client = connect(world.agent()[1])
    context = {"intent_id": "intent-1", "run_id": "run-1", "task_id": None}
    called = client.tools.call("stripe", "charges.read", parameters={"charge_id": "ch_1"}, context=context)
    record = world.admin.ask("GET", f"/invocations/{called.invocation_id}")
    assert (record["context"]["intent_id"], record["run_id"]) == ("intent-1", "run-1")


def test_a_missing_scope_says_what_is_possible(world, connect):
    client = connect(world.agent(["charges.read", "charges.create"])[1])
    with pytest.raises(GrantScopeError) as refused:
        client.tools.invoke("stripe", "refunds.create", parameters={"amount": 1, "currency": "usd"})
    error = refused.value
    assert error.code == "GRANT_SCOPE_INSUFFICIENT"
    assert set(error.available_scopes) == {"charges.read", "charges.create"}
    assert (error.status_code, error.requested_scope) == (403, "refunds.create")
    assert error.request_id
    assert world.admin.ask("GET", f"/invocations/{error.invocation_id}")["status"] == "denied"
    assert "refunds.create" in str(error) and "[GRANT_SCOPE_INSUFFICIENT]" in str(error)


def test_an_exhausted_rate_says_when_to_come_again(world, connect):
    client = connect(world.agent(["charges.read"], constraints={"max_invocations_per_hour": 1})[1])
    client.tools.invoke("stripe", "charges.read", parameters={"charge_id": "ch_1"})
    with pytest.raises(GrantRateLimitError) as refused:
        client.tools.invoke("stripe", "charges.read", parameters={"charge_id": "ch_1"})
    assert 0 < refused.value.retry_after_seconds <= 3600
    assert refused.value.status_code == 429


def test_each_refusal_has_its_class(world, connect):
    name, key = world.agent(["charges.create", "broken.read"], constraints={"amount_max": 100})
    client = connect(key)
    with pytest.raises(GrantParameterError) as denied:
        client.tools.invoke("stripe", "charges.create", parameters={"amount": 101, "currency": "usd"})
    assert denied.value.path == "parameters.amount" or denied.value.path == "amount"
    with pytest.raises(ParametersError) as invalid:
        client.tools.invoke("stripe", "charges.create", parameters={"amount": "much", "currency": "usd"})
    assert (invalid.value.path, invalid.value.rule) == ("parameters.amount", "type")
    with pytest.raises(ServiceError) as failed:
        client.tools.invoke("stripe", "broken.read")
    assert (failed.value.http_status, failed.value.status_code) == (422, 502)
    assert failed.value.result == {"problem": "no such thing"}
    assert failed.value.invocation_id.startswith("inv_")
    with pytest.raises(ToolNotFoundError):
        client.tools.invoke("github", "issues.create")
    with pytest.raises(GrantNotFoundError):
        client.tools.invoke("stripe", "charges.create", grant_id="grant_01ARZ3NDEKTSV4RRFFQ69G5FAV")
    (grant,) = client.tools.grants()
    world.admin.ask("PATCH", f"/grants/{grant.id}/suspend", {})
    with pytest.raises(GrantSuspendedError):
        client.tools.invoke("stripe", "charges.create", parameters={"amount": 1, "currency": "usd"})
    assert client.tools.grants() == [] and client.tools.list() == []


def test_an_expired_grant_is_refused_as_such(world, connect):
    name, key = world.agent([])
    client = connect(key)
    # A grant cannot be created expired: this one ends before it is used.
    grant = world.admin.grant(world.credential, name, ["charges.read"], expires_at=soon())
    wait_until(lambda: world.admin.ask("GET", f"/grants/{grant}")["status"] == "expired")
    with pytest.raises(GrantExpiredError):
        client.tools.invoke("stripe", "charges.read", parameters={"charge_id": "ch_1"})


def test_a_service_that_is_not_there_is_a_proxy_error(world, connect):
    tools = {"read": {"http": {"method": "GET", "path": "/"}}}
    definition = {"service": f"gone-{connect.kind}", "version": "1", "tools": tools}
    credential = world.admin.service(definition, "http://127.0.0.1:1", ["read"])
    name, key = world.agent([])
    world.admin.grant(credential, name, ["read"])
    with pytest.raises(ToolProxyError) as failed:
        connect(key).tools.invoke(definition["service"], "read")
    assert failed.value.code == "PROXY_ERROR" and not failed.value.timed_out


def test_a_wrong_key_is_refused_and_appears_nowhere(connect):
    client = connect("tgk_wrong_key_of_a_test")
    with pytest.raises(AuthenticationError) as refused:
        client.tools.list()
    assert refused.value.status_code == 401
    assert "tgk_wrong" not in repr(refused.value) + repr(client) + str(refused.value)


def test_a_parameter_of_the_tool_in_the_wrong_place_is_named(world, connect):
    client = connect(world.agent()[1])
    with pytest.raises(TypeError, match="charge_id"):
        client.tools.invoke("stripe", "charges.read", charge_id="ch_1")


def test_address_and_key_may_come_from_the_environment(world, monkeypatch):
    monkeypatch.setenv("TOOLGATE_URL", world.gate.url + "/")
    monkeypatch.setenv("TOOLGATE_TOKEN", world.agent()[1])
    with Client() as client:
        assert client.tools.list()
    monkeypatch.delenv("TOOLGATE_TOKEN")
    with pytest.raises(ValueError, match="api_key"):
        Client()
    with pytest.raises(ValueError, match="server_url"):
        Client("gate.example", "key")


def test_a_caller_with_the_permission_acts_for_another_agent(world, connect):
    name, _ = world.agent(["charges.read"])
    client = connect(TOKEN, agent_id=name)
    assert [tool.tool for tool in client.tools.list()] == ["charges.read"]
    assert client.tools.grants()[0].agent_id == name
    called = client.tools.call("stripe", "charges.read", parameters={"charge_id": "ch_1"})
    assert world.admin.ask("GET", f"/invocations/{called.invocation_id}")["agent_id"] == name


def soon() -> str:
    return (datetime.now(timezone.utc) + timedelta(seconds=1)).isoformat(timespec="milliseconds")


def wait_until(holds) -> None:
    """Asks the gate again and again; a test that asks for a minute has found a fault."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
