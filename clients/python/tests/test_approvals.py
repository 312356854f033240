"""Calls that wait for an approver: the caller is told what they wait for, and why they ended."""

from __future__ import annotations

import threading

import pytest

from toolgate.exceptions import ApprovalDeniedError, ApprovalTimedOutError, CallTimeoutError, ConflictError

MONEY = {"parameters": {"amount": 7, "currency": "usd"}}


def test_a_call_that_waits_says_what_for_and_continues_when_it_is_approved(world, connect):
    told = []

    def approve(pending):
        told.append(pending)
        world.approver.decide(pending.approval_id, "approve")

    client = connect(world.agent()[1])
    result = client.tools.invoke("stripe", "transfers.create", **MONEY, on_pending=approve)
    assert result["amount"] == 7
    (pending,) = told
    assert pending.approval_id.startswith("appr_") and pending.invocation_id.startswith("inv_")
    assert pending.tool == "stripe.transfers.create"
    assert pending.arguments == MONEY["parameters"]
    assert pending.description and pending.expires_at is not None
    assert [reason["source"] for reason in pending.reasons] == ["tool"]
    assert pending.url == f"{world.gate.url}/api/v1/approvals/{pending.approval_id}"
    shown = world.approver.http.get(pending.url).json()
    assert shown["status"] == "approved"


def test_a_denied_call_has_the_reason(world, connect):
    client = connect(world.agent()[1])
    before = len(world.service.received)
    with pytest.raises(ApprovalDeniedError, match="not this month") as denied:
        client.tools.invoke(
            "stripe",
            "transfers.create",
            **MONEY,
            on_pending=lambda pending: world.approver.decide(pending.approval_id, "deny", "not this month"),
        )
    assert (denied.value.denied_by, denied.value.code) == ("ann", "APPROVAL_DENIED")
    assert denied.value.approval_id.startswith("appr_")
    assert len(world.service.received) == before


def test_nobody_decides_in_time(world, connect):
    client = connect(world.agent()[1])
    with pytest.raises(ApprovalTimedOutError):
        client.tools.invoke("stripe", "transfers.brief", **MONEY)


def test_a_call_that_needs_no_approval_tells_nothing(world, connect):
    client = connect(world.agent()[1])
    told = []
    client.tools.invoke("stripe", "charges.read", parameters={"charge_id": "ch_1"}, on_pending=told.append)
    assert told == []


def test_a_call_that_the_gate_detaches_is_waited_for_too(world, connect):
    told = []

    def approve(pending):
        told.append(pending)
        world.approver.decide(pending.approval_id, "approve")

    client = connect(world.agent()[1])
    pending = threading.Thread(target=approve_next, args=(world, "stripe.transfers.later"))
    pending.start()
    result = client.tools.invoke("stripe", "transfers.later", **MONEY)
    pending.join()
    assert result["amount"] == 7
    assert client.tools.invoke("stripe", "transfers.later", **MONEY, on_pending=approve)["amount"] == 7
    assert len(told) == 1


def test_a_call_that_is_not_waited_for_any_longer_is_cancelled(world, connect):
    client = connect(world.agent()[1])
    for options in ({}, {"on_pending": lambda pending: None}):
        with pytest.raises(CallTimeoutError) as late:
            client.tools.invoke("stripe", "transfers.create", **MONEY, timeout=1, **options)
        assert late.value.idempotency_key


def test_a_detached_call_is_a_handle(world, connect):
    client = connect(world.agent()[1])
    call = client.tools.invoke_detached("stripe", "transfers.create", **MONEY)
    assert call.invocation_id == call.state.invocation_id
    with pytest.raises(CallTimeoutError) as open_call:
        call.result(timeout=0)
    assert open_call.value.invocation_id == call.invocation_id
    told = []

    def approve(pending):
        told.append(pending)
        world.approver.decide(pending.approval_id, "approve")

    assert call.result(timeout=60, on_pending=approve)["amount"] == 7
    assert [pending.tool for pending in told] == ["stripe.transfers.create"]
    assert told[0].invocation_id == call.invocation_id
    # The handle can be made again by another process, and has the result as long as the gate.
    again = client.tools.detached(call.invocation_id)
    assert again.call_result().invocation_id == call.invocation_id
    again.delete_result()


def test_a_detached_call_can_be_cancelled_before_it_is_executed(world, connect):
    client = connect(world.agent()[1])
    call = client.tools.invoke_detached("stripe", "transfers.create", **MONEY)
    call.cancel()
    with pytest.raises(Exception, match=r"CALL_CANCELLED|APPROVAL_CANCELLED"):
        call.result(timeout=60)
    done = client.tools.invoke_detached("stripe", "charges.read", parameters={"charge_id": "ch_1"})
    assert done.result()["id"] == "ch_1"
    with pytest.raises(ConflictError):
        done.cancel()


def test_the_same_detached_call_is_the_same_call(world, connect):
    client = connect(world.agent()[1])
    options = {"parameters": {"charge_id": "ch_1"}, "idempotency_key": "once"}
    first = client.tools.invoke_detached("stripe", "charges.read", **options)
    first.result()
    second = client.tools.invoke_detached("stripe", "charges.read", **options)
    assert second.invocation_id == first.invocation_id
    assert second.result() == first.result()


def approve_next(world, tool):
    """Approves the next call of a tool that waits."""
    while True:
        waiting = world.approver.ask("GET", f"/approvals?status=pending&tool={tool}")["approvals"]
        if waiting:
            world.approver.decide(waiting[0]["id"], "approve")
            return
