"""What schemathesis cannot know: which things exist. Loaded by it, through SCHEMATHESIS_HOOKS.

Requests that fit the document are pointed at things made for them, so that they reach what lies behind the look-up. All
others are sent as they were generated. Which operations have succeeded is written down at the end.
"""

import atexit
import json
import os
import threading
import urllib.request
from itertools import count
from pathlib import Path

import schemathesis

URL = os.environ["TOOLGATE_URL"]
KEY = os.environ["ADMIN_KEY"]
UPSTREAM = os.environ["UPSTREAM_URL"]
MCP_SERVER = os.environ["MCP_URL"]
PEER = os.environ["PEER_URL"]
NUMBERS = count(1)
INTENTS = []
STORES = {}
SUCCEEDED = set()
TENANTS = set()


def ask(method, path, body=None, more=None):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **(more or {})}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{URL}/api/v1{path}", data, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def fresh_name():
    return f"made-for-a-request-{next(NUMBERS)}"


def service(name=None):
    """A service on loopback: one tool that works, and one that the upstream answers with an error."""
    tools = {
        "charges.create": {"http": {"method": "POST", "path": "/charges"}},
        "charges.break": {"http": {"method": "POST", "path": "/broken"}, "scope": "charges.create"},
    }
    body = {"service": name or fresh_name(), "version": "1", "base_url": UPSTREAM, "tools": tools}
    return ask("PUT", f"/services/{body['service']}", body)["service"]


def agent():
    return ask("POST", "/agents", {"id": fresh_name()})["id"]


def tenant():
    """A tenant of its own: limits of the default one would hold for the whole run."""
    name = ask("POST", "/tenants", {"id": fresh_name()})["id"]
    TENANTS.add(name)
    return name


def mount():
    """A mounted MCP server whose tools wait for a decision."""
    return ask("POST", "/mounts", {"name": fresh_name(), "url": MCP_SERVER, "vault_id": vault()})["name"]


def decision(name):
    """What waits for a decision, with the hashes that are shown."""
    review = ask("GET", f"/mounts/{name}/review")
    tools = {tool["upstream"]: tool["hash"] for tool in review["tools"]}
    return {"server": review["server"]["hash"], "tools": tools}


def store(path, more, method):
    """A store that few requests share: a tenant can have so many. One that is removed is nobody else's."""
    if method == "DELETE" or path not in STORES:
        name = ask("POST", path, {"name": fresh_name(), **more})["name"]
        if method == "DELETE":
            return name
        STORES[path] = name
    return STORES[path]


def document(collection):
    body = {"id": fresh_name(), "format": "text/plain", "text": "Refunds take 30 days."}
    return ask("POST", f"/knowledge/{collection}/documents", body)["id"]


def vault():
    return ask("POST", "/vaults", {"name": "made for a request"})["id"]


def credential():
    body = {
        "service": "payments",
        "label": "made for a request",
        "scopes_available": ["charges.create", "charges.read"],
        "material": {"api_key": "sk_of_a_request"},
    }
    return ask("POST", f"/vaults/{vault()}/credentials", body)["id"]


def grant():
    body = {"credential_id": credential(), "agent_id": "admin", "delegatable": True}
    return ask("POST", "/grants", {**body, "scopes": ["charges.create", "charges.read"]})["id"]


def invocation():
    body = {"grant_id": grant(), "service": "payments", "tool": "charges.read", "agent_id": "admin"}
    return ask("POST", "/invocations", body)["id"]


def approval():
    """A call that waits for somebody to answer it, for a while. Its tool is its own, so that no earlier answer covers it."""
    name = fresh_name()
    ask("PUT", f"/approval-sessions/{name}", {"attendance": "inbox", "ttl_seconds": 20})
    call = {"tool": f"a-program.{name}", "category": "exec", "arguments": {"command": "ls"}, "session": {"name": name}}
    threading.Thread(target=ask, args=("POST", "/approvals/ask", call), daemon=True).start()
    while True:
        waiting = ask("GET", f"/approvals?status=pending&tool=a-program.{name}")["approvals"]
        if waiting:
            # Whatever else is asked in this session is denied at once: schemathesis uses again what it has seen.
            ask("PUT", f"/approval-sessions/{name}", {"attendance": "required"})
            return waiting[0]["id"]


def standing_approval():
    return ask("POST", f"/approvals/{approval()}/decide", {"decision": "approve", "scope": "always"})["standing_approval_id"]


def policies(rule):
    """Policies that concern nobody, with a rule of this name in shadow."""
    text = f'@id("{rule}") @mode("shadow") forbid (principal == Principal::"nobody", action, resource);'
    return ask("PUT", "/policies", {"files": [{"name": "made.cedar", "text": text}]})["version"]


def shadowed_rule():
    rule = fresh_name()
    policies(rule)
    return rule


def run():
    """An execution with one call."""
    call = {"tool": "payments.charges.create", "grant_id": grant(), "parameters": {}}
    return ask("POST", "/tools/invoke", call)["invocation_id"]


def detached():
    """A detached call that has ended."""
    call = {"tool": "payments.charges.create", "grant_id": grant(), "parameters": {}}
    return ask("POST", "/tools/invoke", call, {"Prefer": "respond-async, wait=60"})["invocation_id"]


def waiting_call():
    """A detached call that waits for somebody."""
    name = fresh_name()
    ask("PUT", f"/approval-sessions/{name}", {"attendance": "inbox", "ttl_seconds": 20})
    call = {"tool": "payments.charges.create", "grant_id": grant(), "parameters": {}, "approval_session": {"name": name}}
    return ask("POST", "/tools/invoke", call, {"Prefer": "respond-async"})["invocation_id"]


def new_intent():
    return ask("POST", "/intents", {"title": fresh_name(), "status": "active"})["id"]


def intent():
    """One that few requests share: a principal can have so many open ones, and an intent so many things below it."""
    if not INTENTS or next(NUMBERS) % 12 == 0:
        INTENTS.append(new_intent())
    return INTENTS[-1]


def task():
    return ask("POST", "/tasks", {"intent_id": intent(), "name": fresh_name()})["id"]


def plan():
    return ask("POST", "/plans", {"intent_id": intent()})["id"]


def lease(of):
    return ask("POST", f"/intents/{of}/leases", {"scope": fresh_name()})["id"]


def coordinator():
    return ask("POST", "/coordinators", {"agent_id": "admin", "intent_id": intent()})["id"]


MAKERS = {
    "agent_id": agent,
    "approval_id": approval,
    "coordinator_id": coordinator,
    "credential_id": credential,
    "grant_id": grant,
    "intent_id": intent,
    "invocation_id": invocation,
    "lease_id": lambda: None,
    "plan_id": plan,
    "run_id": run,
    "version": lambda: str(policies(fresh_name())),
    "mount": mount,
    "key_id": lambda: ask("POST", f"/agents/{agent()}/keys")["id"],
    "service": service,
    "session": fresh_name,
    "standing_approval_id": standing_approval,
    "task_id": task,
    "tenant_id": lambda: "default",
    "token": lambda: "a7" * 32,
    "vault_id": vault,
}
OWN_KEYS = {key["id"] for key in ask("GET", "/agents/admin/keys")["keys"]}
service("payments")


@schemathesis.hook
def before_call(context, case, kwargs):
    route, path = case.operation.path, case.path_parameters
    if path.get("key_id") in OWN_KEYS:
        # Without its key the rest of the run would see nothing but 401.
        path["key_id"] = MAKERS["key_id"]()
    if case.operation.method.upper() == "PATCH" and path.get("agent_id") == "admin":
        # Nor with fewer permissions.
        path["agent_id"] = MAKERS["agent_id"]()
    if route in ("/api/v1/stop", "/api/v1/resume") and isinstance(case.body, dict) and "agent" in case.body:
        case.body["agent"] = agent()
    if case.meta is None or case.meta.generation.mode.is_negative:
        return
    if route in ("/api/v1/stop", "/api/v1/resume"):
        # Nor may all other calls of the run be stopped.
        case.body.clear()
        case.body["agent"] = agent()
    if route.startswith("/api/v1/coordinators") and isinstance(case.body, dict) and "guardrails" in case.body:
        # Nor may the calls of its own agent be limited.
        case.body["guardrails"] = {"auto_delegate": True}
    if route == "/api/v1/tenants/{tenant_id}" and case.operation.method.upper() == "PATCH":
        path["tenant_id"] = tenant()
    if route.endswith("/invoke"):
        call_on_loopback(case)
    elif case.meta.phase.name != "stateful":
        fit(case, route, path)


def call_on_loopback(case):
    """Never another service, whatever the run has registered meanwhile."""
    number = next(NUMBERS)
    for other in ("tool_name", "version", "agent_id", "approval_session", "context"):
        case.body.pop(other, None)
    case.body["tool"] = "payments.charges.break" if number % 4 == 0 else "payments.charges.create"
    case.body["grant_id"] = grant()
    case.headers.pop("X-Agent-ID", None)


def fit(case, route, path):
    """Gives a request what must agree with something outside it: names that are free, ids that exist."""
    method = case.operation.method.upper()
    for name in path:
        if name == "store":
            path[name] = store("/memory/stores", {"scope": "agent"}, method)
        elif name == "collection":
            path[name] = store("/knowledge", {}, method if route.endswith("/{collection}") else "GET")
        elif name != "document" and path[name] not in TENANTS:
            path[name] = MAKERS[name]()
    if "document" in path:
        path["document"] = document(path["collection"])
    if route.endswith("/result"):
        path["invocation_id"] = detached()
    if route.endswith("/cancel"):
        path["invocation_id"] = waiting_call()
    if "grant_id" in (case.query or {}):
        case.query["grant_id"] = grant()
    if route.endswith("/{grant_id}/resume"):
        ask("PATCH", f"/grants/{path['grant_id']}/suspend")
    body = case.body if isinstance(case.body, dict) else {}
    if "id" in body:
        body["id"] = fresh_name()
    for name in ("credential_id", "vault_id"):
        if name in body:
            body[name] = path.get(name) or MAKERS[name]()
    if "source_grant_id" in body:
        body["source_grant_id"] = path["grant_id"]
    if route.startswith("/api/v1/grants") and "reason" not in body and body:
        body["scopes"] = ["charges.read"]
        body.pop("expires_at", None)
    if route.endswith("/delegate"):
        body.pop("agent_id", None)
        body.pop("delegation_depth", None)
        body["target_agent_id"] = "refunds"
    if route.startswith("/api/v1/services") and body:
        body["service"] = path.get("service") or fresh_name()
    if route == "/api/v1/mounts" and body:
        body.update(name=fresh_name(), url=MCP_SERVER, vault_id=vault())
        body.pop("credential_id", None)
    if route == "/api/v1/peers" and body:
        body.update(url=PEER, vault_id=vault())
        body.pop("credential_id", None)
    if route in ("/api/v1/memory/stores", "/api/v1/knowledge", "/api/v1/peers") and body:
        # Few are made: a tenant can have so many.
        body["name"] = fresh_name() if next(NUMBERS) % 8 == 0 else route.replace("/", "-")[1:]
    if route.endswith("/{store}/forget"):
        body.clear()
        body["all"] = True
    if route.endswith("/{mount}/accept"):
        body.update(decision(path["mount"]))
    if route.endswith("/{mount}/reject"):
        body["tools"] = decision(path["mount"])["tools"]
    if route == "/api/v1/apply" and body:
        body.update(document=f"name: {fresh_name()}\nversion: '1'\n")
        body.pop("policy_files", None)
    if route == "/api/v1/policies/promote":
        body["policy_id"] = shadowed_rule()
    if route == "/api/v1/approvals/ask":
        body.pop("agent_id", None)
        case.headers.pop("X-Agent-ID", None)
    if route.startswith("/api/v1/approval-sessions"):
        # A higher mode is the operator's to allow, and in an inbox later requests would wait.
        body.pop("mode", None)
        body.pop("attendance", None)
    if route == "/api/v1/invocations" and body:
        body.update(grant_id=grant(), service="payments", agent_id="admin")
    if route.startswith(("/api/v1/intents", "/api/v1/tasks", "/api/v1/plans", "/api/v1/coordinators")):
        fit_work(case, route, path, body)


# What depends on other objects, on the caller or on the time.
DEPENDENT = (
    "actor",
    "agent_id",
    "assigned_agent",
    "created_by",
    "cursor",
    "deadline",
    "depends_on",
    "expires_at",
    "parent_intent_id",
    "parent_task_id",
    "plan_id",
    "supervisor_id",
    "task_id",
    "tasks",
)


def fit_work(case, route, path, body):
    """Gives a request about work versions, ids and steps that are possible."""
    if "If-Match" in case.headers:
        case.headers["If-Match"] = "1"
    for name in DEPENDENT:
        body.pop(name, None)
        (case.query or {}).pop(name, None)
    method = case.operation.method.upper()
    if "lease_id" in path:
        path["lease_id"] = lease(path["intent_id"])
    if route.endswith("/agents/{agent_id}"):
        ask("POST", f"/intents/{path['intent_id']}/agents", {"agent_id": path["agent_id"]})
    if route.endswith("/agents") and method == "POST":
        body["agent_id"] = agent()
    if route in ("/api/v1/tasks", "/api/v1/plans", "/api/v1/coordinators"):
        body["intent_id"] = intent()
    if route == "/api/v1/coordinators":
        body["agent_id"] = "admin"
    if route.endswith(("/state", "/{intent_id}/status")):
        path["intent_id"] = new_intent()
    if route.endswith("/state"):
        body.clear()
        body["state"] = {"progress": 0.5}
    if route.endswith("/events") and method == "POST":
        body["event_type"] = "comment"
    if route.endswith("/costs") and method == "POST":
        body.update(cost_type="tokens", amount=12.5)
    if "status" in body:
        body["status"] = "cancelled" if route.startswith("/api/v1/tasks") else "active"
    if route.startswith("/api/v1/plans") and "state" in body:
        body["state"] = "active"


@schemathesis.hook
def after_call(context, case, response):
    if 200 <= response.status_code < 300:
        SUCCEEDED.add(f"{case.operation.method.upper()} {case.operation.path}")
        if case.operation.path == "/api/v1/stop":
            ask("POST", "/resume", {"all": True})
            ask("POST", "/resume", {"tenant": "default"})


@atexit.register
def write_down():
    Path(os.environ["SUCCEEDED"]).write_text("\n".join(sorted(SUCCEEDED)))
