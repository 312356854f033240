"""Drives a running gate with the official OpenIntent client 0.17.0, both its synchronous and its asynchronous form.

Ends with status 0 when everything is as the client expects it, else with the assertion that failed.
"""

import inspect
import os
from datetime import datetime, timedelta, timezone
from importlib.metadata import version

from openintent import AsyncOpenIntentClient, OpenIntentClient
from openintent.exceptions import ConflictError, LeaseConflictError, NotFoundError, OpenIntentError, ValidationError
from openintent.models import (
    Credential,
    CredentialVault,
    GrantConstraints,
    GrantSource,
    GrantStatus,
    InvocationStatus,
    ToolInvocation,
)
from openintent_caller import Caller, code_of, raises

SERVICE_URL = os.environ["SERVICE_URL"]
WORKER = "agent_worker_01"
SECRET = "sk_live_of_the_python_client"
SCOPES = ["charges.read", "charges.create", "refunds.create"]
AUTH_TYPES = {
    "api_key": {"api_key": SECRET},
    "bearer_token": {"token": SECRET},
    "basic_auth": {"username": "ann", "password": SECRET},
    "oauth2_token": {"access_token": SECRET, "refresh_token": SECRET + "_2"},
    "oauth2_client_credentials": {"client_id": "client", "client_secret": SECRET},
    "connection_string": {"connection_string": SECRET},
    "custom": {"signing_secret": SECRET},
    "webhook": {"signing_secret": SECRET},
}


def vaults_and_credentials(admin):
    vault = admin.create_vault(owner_id="user_01HABC", name="acme-corp-production")
    assert vault["owner_id"] == "user_01HABC" and vault["name"] == "acme-corp-production", vault
    CredentialVault.from_dict(vault)

    made = []
    for auth_type, secrets in AUTH_TYPES.items():
        metadata = {"base_url": "https://api.example.com", "environment": "test", **secrets}
        credential = admin.create_credential(
            vault["id"], "stripe", "stripe-production", auth_type, scopes_available=SCOPES, metadata=metadata
        )
        made.append(credential["id"])
        for shown in (credential, admin.get_credential(credential["id"])):
            assert SECRET not in str(shown), shown
            assert shown["metadata"] == {"base_url": "https://api.example.com", "environment": "test"}, shown
            assert shown["credential_metadata"] == shown["metadata"], shown
            assert shown["auth_type"] == auth_type and shown["status"] == "active", shown
            if auth_type != "webhook":  # a type that the client's own model does not know
                read = Credential.from_dict(shown)
                assert read.created_at.utcoffset() == timedelta(0), read
                assert read.scopes_available == sorted(SCOPES), read
    assert sorted(admin.get_vault(vault["id"])["credentials"]) == sorted(made)

    end = datetime.now(timezone.utc) + timedelta(days=1)
    expiring = admin.create_credential(
        vault["id"], "stripe", "short-lived", material={"api_key": SECRET}, expires_at=end.isoformat()
    )
    read = Credential.from_dict(expiring)
    assert abs(read.expires_at - end) < timedelta(milliseconds=1), read
    return vault["id"], made[0]


def grants(admin, worker, credential):
    constraints = GrantConstraints(
        max_invocations_per_hour=100,
        max_cost_per_invocation=0.5,
        allowed_parameters={"currency": ["usd"], "amount_max": 50000},
        denied_parameters={"metadata.test_mode": [True]},
        ip_allowlist=["10.0.0.0/8"],
    )
    end = datetime(2099, 6, 1, 12, 0, 0, 123000, tzinfo=timezone.utc)
    grant = admin.create_tool_grant(
        credential,
        "agent_worker_01",
        "user_01HABC",
        scopes=["charges.read"],
        constraints=constraints.to_dict(),
        expires_at=end.isoformat(),
        delegatable=True,
        delegation_depth=2,
        context={"intent_id": "intent_1"},
    )
    for read in (grant, admin.get_tool_grant(grant.id), worker.get_tool_grant(grant.id)):
        assert read.id == grant.id and read.credential_id == credential, read
        assert read.agent_id == "agent_worker_01" and read.granted_by == "user_01HABC", read
        assert read.scopes == ["charges.read"] and read.constraints == constraints, read
        assert read.source is GrantSource.DIRECT and read.status is GrantStatus.ACTIVE, read
        assert read.delegatable is True and read.delegation_depth == 2 and read.delegated_from is None, read
        assert read.context == {"intent_id": "intent_1"}, read
        assert read.expires_at == end and read.revoked_at is None, read
        assert read.created_at.utcoffset() == timedelta(0), read

    plain = admin.create_tool_grant(credential, "agent_worker_01", "admin", scopes=["charges.read"])
    assert plain.delegatable is False and plain.delegation_depth == 0 and plain.constraints is None, plain
    assert plain.expires_at - plain.created_at == timedelta(days=30), plain
    endless = admin.create_tool_grant(
        credential, "agent_worker_01", "admin", expires_at=None, allow_indefinite=True, delegation_depth=None
    )
    assert endless.expires_at is None and endless.delegation_depth is None and endless.scopes == [], endless

    revoked = admin.revoke_grant(plain.id)
    assert revoked["status"] == "revoked" and revoked["grant_id"] == plain.id, revoked
    assert revoked["revoked_count"] == 1 and revoked["revision"] > 0, revoked
    assert admin.get_tool_grant(plain.id).status is GrantStatus.REVOKED
    for caller in (admin, worker):
        listed = {grant.id: grant.status for grant in caller.list_agent_grants("agent_worker_01")}
        mine = {grant.id: GrantStatus.ACTIVE, plain.id: GrantStatus.REVOKED, endless.id: GrantStatus.ACTIVE}
        assert mine.items() <= listed.items(), listed
    assert worker.revoke_grant(endless.id)["status"] == "revoked"
    return grant


def refusals(kind, admin, worker, vault, credential, grant):
    missing = raises(NotFoundError, admin.get_tool_grant, "grant_01HDEF")
    assert missing.status_code == 404 and code_of(missing) == "GRANT_NOT_FOUND", missing.response
    assert code_of(raises(NotFoundError, admin.get_vault, "vault_01HXYZ")) == "VAULT_NOT_FOUND"
    assert code_of(raises(NotFoundError, admin.get_credential, "cred_01H001")) == "CREDENTIAL_NOT_FOUND"
    assert code_of(raises(NotFoundError, worker.get_credential, credential)) == "CREDENTIAL_NOT_FOUND"
    raises(NotFoundError, admin.create_credential, "vault_01HXYZ", "stripe", "label")
    raises(NotFoundError, admin.create_tool_grant, "cred_01H001", "a", "admin")

    invalid = raises(ValidationError, admin.create_vault, "admin", "")
    assert invalid.status_code == 400 and "name" in invalid.message, invalid.message
    assert invalid.errors == [invalid.message], invalid.errors
    leaked = raises(ValidationError, admin.create_credential, vault, "stripe", "label", encrypted_material=SECRET)
    assert code_of(leaked) == "UNKNOWN_FIELD" and SECRET not in str(leaked.response), leaked.response
    beyond = raises(ValidationError, admin.create_tool_grant, credential, "a", "admin", scopes=["payouts.create"])
    assert code_of(beyond) == "SCOPE_UNAVAILABLE", beyond.response
    unknown = {"max_calls": 5}
    raises(ValidationError, admin.create_tool_grant, credential, "a", "admin", constraints=unknown)
    past = "2020-01-01T00:00:00+00:00"
    raises(ValidationError, admin.create_tool_grant, credential, "a", "admin", expires_at=past)
    raises(ValidationError, admin.create_credential, vault, "stripe", "label", "no_such_type")

    denied = raises(OpenIntentError, worker.create_vault, "agent_worker_01", "mine")
    assert denied.status_code == 403 and code_of(denied) == "PERMISSION_DENIED", denied.response
    raises(OpenIntentError, worker.list_agent_grants, "admin")
    stranger = Caller(kind, "a-key-that-nobody-has", "agent_worker_01")
    unknown = raises(OpenIntentError, stranger.get_vault, vault)
    assert unknown.status_code == 401 and code_of(unknown) == "UNAUTHENTICATED", unknown.response
    impostor = Caller(kind, os.environ["WORKER_KEY"], "admin")
    refused = raises(OpenIntentError, impostor.get_tool_grant, grant.id)
    assert refused.status_code == 403, refused.response

    # The client reaches no route that conflicts, so its own connection is asked; what matters is how it reads the answer.
    def register():
        answer = admin.client._client.post("/api/v1/agents", json={"id": "admin"})
        answer = admin.loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer
        return admin.client._handle_response(answer)

    conflict = raises(ConflictError, register)
    assert conflict.status_code == 409 and "admin" in conflict.message, conflict.message
    assert not isinstance(conflict, LeaseConflictError)


def tool_grant(admin, service, **limits):
    """A credential that says by itself how its service is called, as the reference has it, and a grant on it."""
    vault = admin.create_vault(owner_id="user_01HABC", name=service)
    metadata = {
        "base_url": SERVICE_URL,
        "token": SECRET,
        "endpoints": {
            "charges.create": {"path": "/v1/charges", "method": "POST", "param_mapping": "body"},
            "charges.list": {"path": "/v1/charges", "method": "GET", "param_mapping": "query"},
            "charges.read": {"path": "/v1/charges/{charge_id}", "method": "GET"},
        },
    }
    scopes = [*metadata["endpoints"], "refunds.create"]
    credential = admin.create_credential(
        vault["id"], service, service, "bearer_token", scopes_available=scopes, metadata=metadata
    )
    return admin.create_tool_grant(
        credential["id"], WORKER, "admin", scopes=scopes[:3], constraints=GrantConstraints(**limits).to_dict()
    )


def calls(admin, worker, service):
    grant = tool_grant(admin, service, allowed_parameters={"amount_max": 5000})
    charge = {"amount": 2500, "currency": "usd"}
    made = worker.invoke_tool(f"{service}.charges.create", WORKER, charge)
    assert made["status"] == "success" and made["error"] is None, made
    assert made["result"]["amount"] == 2500 and made["result"]["id"].startswith("ch_"), made
    assert made["grant_id"] == grant.id and made["tool_name"] == f"{service}.charges.create", made
    assert made["duration_ms"] >= 0 and made["invocation_id"].startswith("inv_"), made
    wanted = {"charge_id": made["result"]["id"]}
    read = worker.invoke_tool(f"{service}.charges.read", WORKER, wanted, grant_id=grant.id)
    acted = admin.invoke_tool(f"{service}.charges.read", WORKER, wanted)
    assert acted["status"] == "success" and acted["grant_id"] == grant.id, acted
    assert read["result"] == made["result"], read
    context = {"intent_id": "intent_1", "task_id": "task_1"}
    listed = worker.invoke_tool(f"{service}.charges.list", WORKER, {"limit": 1}, context=context)
    assert [found["id"] for found in listed["result"]["data"]] == [made["result"]["id"]], listed

    once = worker.invoke_tool(f"{service}.charges.create", WORKER, charge, idempotency_key=f"{service}-1")
    again = worker.invoke_tool(f"{service}.charges.create", WORKER, charge, idempotency_key=f"{service}-1")
    assert again["replayed"] is True and again["invocation_id"] == once["invocation_id"], again
    assert again["result"] == once["result"], again
    other = {**charge, "amount": 1}
    conflict = raises(
        ConflictError, worker.invoke_tool, f"{service}.charges.create", WORKER, other, idempotency_key=f"{service}-1"
    )
    assert code_of(conflict) == "IDEMPOTENCY_CONFLICT" and conflict.message, conflict.response
    history(admin, worker, service, grant, [made, read, listed, once], context)
    return grant


def history(admin, worker, service, grant, answers, context):
    reported = worker.record_invocation(
        grant.id,
        service,
        "charges.read",
        WORKER,
        parameters={"charge_id": "ch_9"},
        status="timeout",
        error="it took too long",
        cost={"estimated_cost_usd": 0.25},
        duration_ms=12,
        context=context,
    )
    assert reported["reported"] is True and reported["duration_ms"] == 12, reported
    for caller in (admin, worker):
        records = {record["id"]: record for record in caller.list_invocations(grant.id)}
        assert records.keys() >= {reported["id"], *(answer["invocation_id"] for answer in answers)}, records
        assert SECRET not in str(records), records
        for answer in answers:
            record = ToolInvocation.from_dict(records[answer["invocation_id"]])
            assert record.status is InvocationStatus.SUCCESS and record.service == service, record
            assert record.grant_id == grant.id and record.agent_id == WORKER, record
            assert record.timestamp.utcoffset() == timedelta(0) and record.cost == answer["cost"], record
        # No definition declares these names, so their caller could learn from them whether a guess was a secret.
        wanted = {"amount": 2500, "currency": "usd"} if caller is admin else {"[withheld]": "[withheld]"}
        assert records[answers[0]["invocation_id"]]["parameters"] == wanted, records
        told = records[reported["id"]]
        assert told["error"]["message"] == "it took too long" and told["status"] == "error", told
        assert told["context"]["intent_id"] == "intent_1" and told["cost"]["estimated_cost_usd"] == 0.25, told
        assert len(caller.list_invocations(grant.id, limit=2)) == 2


def denials(admin, worker, service, grant):
    def denied(kind, tool, *arguments, **keywords):
        error = raises(kind, worker.invoke_tool, f"{service}.{tool}", *arguments, **keywords)
        assert SECRET not in str(error.response), error.response
        return error.status_code, code_of(error), error.response

    status, code, body = denied(OpenIntentError, "refunds.create", WORKER)
    assert (status, code) == (403, "GRANT_SCOPE_INSUFFICIENT"), body
    assert body["error"]["available_scopes"] == ["charges.create", "charges.list", "charges.read"], body
    status, code, body = denied(OpenIntentError, "charges.create", WORKER, {"amount": 5001, "currency": "usd"})
    assert (status, code, body["error"]["path"]) == (403, "GRANT_PARAMETER_DENIED", "parameters.amount"), body
    record = {record["id"]: record for record in worker.list_invocations(grant.id)}[body["invocation_id"]]
    assert ToolInvocation.from_dict(record).status is InvocationStatus.DENIED, record
    status, code, body = denied(ValidationError, "charges.read", WORKER, {"charge_id": "../balance"})
    assert (status, code) == (400, "PARAMETERS_INVALID"), body
    status, code, body = denied(OpenIntentError, "charges.create", WORKER, {"amount": 5})
    assert (status, code, body["error"]["http_status"]) == (502, "SERVICE_ERROR", 400), body
    assert body["status"] == "error" and body["result"], body
    # The client says in a header who it is: naming somebody else in the body contradicts that.
    assert denied(OpenIntentError, "charges.read", "admin", {"charge_id": "ch_1"})[1] == "PERMISSION_DENIED"
    missing = raises(NotFoundError, worker.invoke_tool, "no-such-service.charges.read", WORKER)
    assert code_of(missing) == "TOOL_NOT_FOUND", missing.response
    assert code_of(raises(NotFoundError, worker.invoke_tool, service, WORKER)) == "TOOL_NOT_FOUND"

    limited = tool_grant(admin, f"{service}-limited", max_invocations_per_hour=1)
    worker.invoke_tool(f"{service}-limited.charges.list", WORKER)
    rate = raises(OpenIntentError, worker.invoke_tool, f"{service}-limited.charges.list", WORKER)
    assert rate.status_code == 429 and code_of(rate) == "GRANT_RATE_LIMITED", rate.response
    assert 0 < rate.response["error"]["retry_after_seconds"] <= 3600, rate.response
    admin.revoke_grant(limited.id)
    ended = raises(OpenIntentError, worker.invoke_tool, f"{service}-limited.charges.list", WORKER, grant_id=limited.id)
    assert ended.status_code == 403 and code_of(ended) == "GRANT_REVOKED", ended.response


def scenario(kind):
    admin = Caller(kind, os.environ["ADMIN_KEY"], "admin")
    worker = Caller(kind, os.environ["WORKER_KEY"], "agent_worker_01")
    found = worker.discover()
    assert "tools" in found["capabilities"] and found["openApiUrl"] == "/openapi.json", found
    vault, credential = vaults_and_credentials(admin)
    grant = grants(admin, worker, credential)
    refusals(kind, admin, worker, vault, credential, grant)
    service = f"payments-of-{kind.__name__}"
    grant = calls(admin, worker, service)
    denials(admin, worker, service, grant)
    print(f"{kind.__name__}: done")


assert version("openintent") == "0.17.0"
scenario(OpenIntentClient)
scenario(AsyncOpenIntentClient)
