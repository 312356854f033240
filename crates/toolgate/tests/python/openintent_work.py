"""Drives the work objects of a running gate with the official OpenIntent client 0.17.0: intents, leases, events, tasks, plans,
coordinators and costs, and a call in the context of a task.

Ends with status 0 when everything is as the client expects it, else with the assertion that failed.
"""

import os
from datetime import datetime, timedelta, timezone
from importlib.metadata import version

from openintent import AsyncOpenIntentClient, OpenIntentClient
from openintent.exceptions import ConflictError, LeaseConflictError, NotFoundError, OpenIntentError, ValidationError
from openintent.models import (
    CoordinatorStatus,
    EventType,
    GrantSource,
    GrantStatus,
    Guardrails,
    IntentStatus,
    LeaseStatus,
    PlanState,
    TaskStatus,
)
from openintent_caller import Caller, code_of, raises

SERVICE_URL = os.environ["SERVICE_URL"]
LEAD, WORKER, SECRET = "lead", "agent_worker_01", "sk_live_of_the_python_client"


def intents(lead, worker):
    intent = lead.create_intent("Quarterly compliance", "Collect, bill, report", initial_state={"phase": "start"})
    assert intent.status is IntentStatus.DRAFT and intent.version == 1 and intent.created_by == LEAD, intent
    assert intent.state.to_dict() == {"phase": "start"} and intent.constraints == {} and not intent.depends_on, intent
    assert intent.created_at.utcoffset() == timedelta(0), intent
    assert lead.get_intent(intent.id) == intent

    # Nobody else knows of it, until they are assigned.
    assert code_of(raises(NotFoundError, worker.get_intent, intent.id)) == "INTENT_NOT_FOUND"
    assert intent.id not in [other.id for other in worker.list_intents()]
    assigned = lead.assign_agent(intent.id, WORKER)
    assert assigned["agent_id"] == WORKER, assigned
    assert worker.get_intent(intent.id).title == "Quarterly compliance"
    for caller in (lead, worker):
        assert intent.id in [found.id for found in caller.list_intents(limit=100)]
        assert intent.id in [found.id for found in caller.list_intents(status=IntentStatus.DRAFT)]
        assert intent.id not in [found.id for found in caller.list_intents(status=IntentStatus.COMPLETED)]

    version = lead.get_intent(intent.id).version
    patched = lead.update_state(intent.id, version, {"progress": 0.5, "report": {"pages": 3}})
    assert patched.state.to_dict() == {"phase": "start", "progress": 0.5, "report": {"pages": 3}}, patched
    assert patched.version > version, patched
    stale = raises(ConflictError, lead.update_state, intent.id, version, {"progress": 0.9})
    assert stale.current_version == patched.version and code_of(stale) == "VERSION_CONFLICT", stale.response
    active = lead.set_status(intent.id, patched.version, IntentStatus.ACTIVE, reason="everybody is here")
    assert active.status is IntentStatus.ACTIVE and active.version > patched.version, active
    raises(ConflictError, lead.set_status, intent.id, patched.version, IntentStatus.COMPLETED)
    assert raises(ValidationError, lead.create_intent, "", "an empty title").errors
    return active


def events(lead, worker, intent):
    logged = worker.log_event(intent.id, EventType.COMMENT, {"note": "starting"}, trace_id="a" * 32)
    assert logged.event_type is EventType.COMMENT and logged.actor == WORKER, logged
    assert logged.payload["note"] == "starting" and logged.intent_id == intent.id, logged
    assert logged.trace_id == "a" * 32 and logged.parent_event_id is None, logged
    found = lead.get_events(intent.id)
    kinds = [event.event_type for event in found]
    for kind in ("INTENT_CREATED", "AGENT_ASSIGNED", "STATE_PATCHED", "STATUS_CHANGED", "COMMENT"):
        assert EventType[kind] in kinds, kinds
    assert [event.id for event in lead.get_events(intent.id, event_type=EventType.COMMENT)] == [logged.id]
    assert len(lead.get_events(intent.id, limit=2)) == 2
    later = datetime.now(timezone.utc) + timedelta(days=1)
    assert lead.get_events(intent.id, since=later) == []
    # What the gate writes itself, nobody can claim.
    forged = raises(ValidationError, worker.log_event, intent.id, EventType.TOOL_INVOKED, {"tool": "refunds.create"})
    assert forged.response["error"]["path"] == "event_type", forged.response


def leases(lead, worker, intent):
    lease = worker.acquire_lease(intent.id, "research", 60)
    assert lease.status is LeaseStatus.ACTIVE and lease.agent_id == WORKER and lease.scope == "research", lease
    taken = raises(LeaseConflictError, lead.acquire_lease, intent.id, "research", 60)
    assert taken.existing_lease["agent_id"] == WORKER and taken.existing_lease["id"] == lease.id, taken.response
    assert lease.id in [held.id for held in lead.get_leases(intent.id)]
    renewed = worker.renew_lease(intent.id, lease.id, 600)
    assert renewed.id == lease.id and renewed.expires_at > lease.expires_at, renewed
    worker.release_lease(intent.id, lease.id)
    assert lease.id not in [held.id for held in lead.get_leases(intent.id) if held.status is LeaseStatus.ACTIVE]
    again = lead.acquire_lease(intent.id, "research", 60)
    stolen = raises(OpenIntentError, worker.release_lease, intent.id, again.id)
    assert stolen.status_code == 403, stolen.response
    lead.release_lease(intent.id, again.id)
    # Only the synchronous client has this one.
    if isinstance(lead.client, OpenIntentClient):
        with lead.client.lease(intent.id, "analysis") as held:
            raises(LeaseConflictError, worker.acquire_lease, intent.id, "analysis")
        assert held.id not in [one.id for one in lead.get_leases(intent.id) if one.status is LeaseStatus.ACTIVE]
    assert {EventType.LEASE_ACQUIRED, EventType.LEASE_RELEASED} <= {one.event_type for one in lead.get_events(intent.id)}


def coordinators(admin, lead, intent, service):
    guardrails = {
        **Guardrails(max_budget_usd=25.0).to_dict(),
        "max_tool_invocations": 2,
        "allowed_services": [service],
        "auto_delegate": True,
    }
    lease = admin.create_coordinator_lease(LEAD, intent.id, guardrails=guardrails, heartbeat_interval_seconds=30)
    assert lease.status is CoordinatorStatus.ACTIVE and lease.agent_id == LEAD, lease
    assert lease.supervisor_id == "admin" and lease.intent_id == intent.id, lease
    assert lease.guardrails.max_budget_usd == 25.0 and lease.heartbeat_interval_seconds == 30, lease
    for caller in (admin, lead):
        assert caller.get_coordinator_lease(lease.id).id == lease.id
        assert lease.id in [one.id for one in caller.list_coordinator_leases(intent.id)]
    beaten = lead.coordinator_heartbeat(lease.id)
    assert datetime.fromisoformat(beaten["last_heartbeat"]) >= lease.granted_at, beaten
    # A constraint that is stored is enforced, so what would not be enforced is not stored.
    refused = raises(
        ValidationError, admin.create_coordinator_lease, LEAD, intent.id, guardrails={"max_plan_versions": 7}
    )
    assert "max_plan_versions" in refused.message, refused.response
    return lease


def tool_grant(admin, intent, service):
    """A grant of the lead on a registered service, for this intent, which it may delegate."""
    vault = admin.create_vault(owner_id="admin", name=service)
    metadata = {"base_url": SERVICE_URL, "token": SECRET}
    scopes = ["charges.create", "refunds.create"]
    credential = admin.create_credential(
        vault["id"], service, service, "bearer_token", scopes_available=scopes, metadata=metadata
    )
    # Bound to the intent: the guardrails of the lead on other intents do not apply to it.
    context = {"intent_id": intent.id}
    admin.create_tool_grant(
        credential["id"], LEAD, "admin", scopes=scopes, context=context, delegatable=True, delegation_depth=2
    )


def plans(lead, intent, service):
    requires = [
        {"service": service, "scopes": ["charges.create"], "required": True},
        {"service": "email", "scopes": ["send"], "required": False},
    ]
    bill = lead.create_task(
        intent.id, "process-billing", description="bill", requires_tools=requires, input={"customer": "cus_1"},
        priority="high", timeout_seconds=600, metadata={"team": "billing"},
    )
    assert bill.status is TaskStatus.READY and bill.intent_id == intent.id and bill.attempt == 1, bill
    assert [need.to_dict() for need in bill.requires_tools] == requires and bill.metadata == {"team": "billing"}, bill
    assert bill.priority == "high" and bill.timeout_seconds == 600 and bill.input == {"customer": "cus_1"}, bill
    report = lead.create_task(intent.id, "send-report", depends_on=[bill.id])
    assert report.status is TaskStatus.PENDING and report.depends_on == [bill.id], report
    assert lead.get_task(bill.id).blocks == [report.id]
    assert [task.id for task in lead.list_tasks(intent.id)] == [bill.id, report.id]
    assert [task.id for task in lead.list_tasks(intent.id, status=TaskStatus.PENDING)] == [report.id]
    assert [task.id for task in lead.list_tasks(intent.id, limit=1, offset=1)] == [report.id]

    plan = lead.create_plan(intent.id, tasks=[bill.id, report.id], metadata={"quarter": "Q1"})
    assert plan.state is PlanState.DRAFT and plan.tasks == [bill.id, report.id], plan
    assert plan.metadata == {"quarter": "Q1"} and plan.version == 1, plan
    active = lead.update_plan(plan.id, plan.version, state="active")
    assert active.state is PlanState.ACTIVE and active.version > plan.version, active
    stale = raises(ConflictError, lead.update_plan, plan.id, plan.version, state="paused")
    assert stale.current_version == active.version, stale.response
    assert [one.id for one in lead.list_plans(intent.id)] == [plan.id]
    assert lead.get_plan(plan.id).state is PlanState.ACTIVE
    assert lead.get_task(bill.id).plan_id == plan.id
    return bill, report


def work(lead, worker, service, bill, report):
    # Without a grant the task cannot be claimed.
    bill = lead.get_task(bill.id)
    refused = raises(OpenIntentError, worker.update_task, bill.id, bill.version, "claimed")
    assert refused.status_code == 403 and code_of(refused) == "INSUFFICIENT_TOOL_ACCESS", refused.response
    assert refused.response["error"]["missing"] == [{"service": service, "scopes": ["charges.create"]}], refused.response

    # The coordinator assigns it, and with it the least grant.
    assigned = lead.update_task(bill.id, bill.version, assigned_agent=WORKER)
    assert assigned.assigned_agent == WORKER and assigned.status is TaskStatus.READY, assigned
    [grant] = [one for one in worker.list_agent_grants(WORKER) if one.context and one.context.get("task_id") == bill.id]
    assert grant.source is GrantSource.DELEGATED and grant.scopes == ["charges.create"], grant
    assert grant.status is GrantStatus.ACTIVE and grant.delegatable is False, grant

    charge, context = {"amount": 2500, "currency": "usd"}, {"task_id": bill.id}
    early = raises(OpenIntentError, worker.invoke_tool, f"{service}.charges.create", WORKER, charge, context=context)
    assert early.status_code == 403 and code_of(early) == "GRANT_CONTEXT_MISMATCH", early.response
    claimed = worker.update_task(bill.id, assigned.version, "claimed")
    running = worker.update_task(bill.id, claimed.version, "running")
    assert running.status is TaskStatus.RUNNING and running.started_at is not None, running
    made = worker.invoke_tool(f"{service}.charges.create", WORKER, charge, context=context)
    assert made["status"] == "success" and made["grant_id"] == grant.id, made
    ended = worker.update_task(bill.id, running.version, "completed", output={"charge": made["result"]["id"]})
    assert ended.status is TaskStatus.COMPLETED and ended.output == {"charge": made["result"]["id"]}, ended
    assert ended.completed_at is not None, ended
    assert worker.get_tool_grant(grant.id).status is GrantStatus.REVOKED
    late = raises(OpenIntentError, worker.invoke_tool, f"{service}.charges.create", WORKER, charge, context=context)
    assert late.status_code == 403, late.response
    assert lead.get_task(report.id).status is TaskStatus.READY

    jump = raises(ConflictError, worker.update_task, bill.id, ended.version, "running")
    assert code_of(jump) == "TASK_STATE_INVALID", jump.response
    stale = raises(ConflictError, lead.update_task, report.id, 999, "cancelled")
    assert code_of(stale) == "VERSION_CONFLICT", stale.response
    return made


def costs(lead, worker, intent, service, made):
    told = worker.record_cost(intent.id, "tokens", 1200, "tokens", provider="anthropic", metadata={"model": "m"})
    assert told.amount == 1200 and told.unit == "tokens" and told.agent_id == WORKER, told
    assert told.provider == "anthropic" and told.metadata == {"model": "m"}, told
    assert told.recorded_at.utcoffset() == timedelta(0), told
    worker.record_cost(intent.id, "compute", 25, "cents")
    found, summary = lead.get_costs(intent.id)
    assert {told.id, made["invocation_id"]} <= {one.id for one in found}, found
    # In millionths of a US dollar; what has no price adds nothing.
    assert summary.by_type["compute"] == 250_000 and summary.by_type["external_tool"] == 20_000, summary
    assert summary.total == 270_000 and summary.by_agent == {WORKER: 270_000}, summary


def last_events(lead, worker, intent, service):
    kinds = {event.event_type for event in lead.get_events(intent.id, limit=1000)}
    wanted = {
        EventType.TASK_CREATED,
        EventType.TASK_CLAIMED,
        EventType.TASK_STARTED,
        EventType.TASK_COMPLETED,
        EventType.PLAN_CREATED,
        EventType.PLAN_ACTIVATED,
        EventType.GRANT_DELEGATED,
        EventType.GRANT_REVOKED,
        EventType.TOOL_INVOKED,
    }
    assert wanted <= kinds, wanted - kinds
    lead.unassign_agent(intent.id, WORKER)
    assert EventType.AGENT_UNASSIGNED in [event.event_type for event in lead.get_events(intent.id, limit=1000)]
    # Who has worked on it may still read it.
    assert worker.get_intent(intent.id).id == intent.id


def scenario(kind):
    admin = Caller(kind, os.environ["ADMIN_KEY"], "admin")
    lead = Caller(kind, os.environ["LEAD_KEY"], LEAD)
    worker = Caller(kind, os.environ["WORKER_KEY"], WORKER)
    service = f"payments-of-{kind.__name__}"
    assert {"intents", "leasing", "cost-tracking"} <= set(lead.discover()["capabilities"])
    intent = intents(lead, worker)
    tool_grant(admin, intent, service)
    events(lead, worker, intent)
    leases(lead, worker, intent)
    coordinators(admin, lead, intent, service)
    bill, report = plans(lead, intent, service)
    made = work(lead, worker, service, bill, report)
    costs(lead, worker, intent, service, made)
    last_events(lead, worker, intent, service)
    print(f"{kind.__name__}: done")


assert version("openintent") == "0.17.0"
scenario(OpenIntentClient)
scenario(AsyncOpenIntentClient)
