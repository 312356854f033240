"""What schemathesis cannot know: which things exist. Loaded by it, through SCHEMATHESIS_HOOKS.

Requests that fit the document are pointed at things made for them, so that they reach what lies behind the look-up. All
others are sent as they were generated. Which operations have succeeded is written down at the end.
"""

import atexit
import json
import os
import urllib.request
from itertools import count
from pathlib import Path

import schemathesis

URL = os.environ["TOOLGATE_URL"]
KEY = os.environ["ADMIN_KEY"]
NUMBERS = count(1)


def ask(method, path, body=None):
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{URL}/api/v1{path}", data, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def agent():
    return ask("POST", "/agents", {"id": f"made-for-a-request-{next(NUMBERS)}"})["id"]


def vault():
    return ask("POST", "/vaults", {"name": "made for a request"})["id"]


def credential():
    body = {
        "service": "stripe",
        "label": "made for a request",
        "scopes_available": ["charges.create", "charges.read"],
        "material": {"api_key": "sk_of_a_request"},
    }
    return ask("POST", f"/vaults/{vault()}/credentials", body)["id"]


def grant():
    body = {"credential_id": credential(), "agent_id": "admin", "scopes": ["charges.read"], "delegatable": True}
    return ask("POST", "/grants", body)["id"]


MAKERS = {
    "agent_id": agent,
    "credential_id": credential,
    "grant_id": grant,
    "key_id": lambda: ask("POST", f"/agents/{agent()}/keys")["id"],
    "tenant_id": lambda: "default",
    "vault_id": vault,
}
OWN_KEYS = {key["id"] for key in ask("GET", "/agents/admin/keys")["keys"]}


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.path_parameters
    if path.get("key_id") in OWN_KEYS:
        # Without its key the rest of the run would see nothing but 401.
        path["key_id"] = MAKERS["key_id"]()
    if case.meta is None or case.meta.generation.mode.is_negative or case.meta.phase.name == "stateful":
        return
    for name in path:
        path[name] = MAKERS[name]()
    if case.operation.path.endswith("/resume"):
        ask("PATCH", f"/grants/{path['grant_id']}/suspend")
    if isinstance(case.body, dict):
        fit(case.body, path, case.operation.path)


def fit(body, path, route):
    """Gives a body what must agree with something outside it: names that are free, ids that exist."""
    if "id" in body:
        body["id"] = f"made-by-a-request-{next(NUMBERS)}"
    for name in ("credential_id", "vault_id"):
        if name in body:
            body[name] = path.get(name) or MAKERS[name]()
    if "source_grant_id" in body:
        body["source_grant_id"] = path["grant_id"]
    if route.startswith("/api/v1/grants") and "reason" not in body:
        body["scopes"] = ["charges.read"]
        body.pop("expires_at", None)
    if route.endswith("/delegate"):
        body.pop("agent_id", None)
        body["target_agent_id"] = "refunds"
        body.pop("delegation_depth", None)


SUCCEEDED = set()


@schemathesis.hook
def after_call(context, case, response):
    if 200 <= response.status_code < 300:
        SUCCEEDED.add(f"{case.operation.method.upper()} {case.operation.path}")


@atexit.register
def write_down():
    Path(os.environ["SUCCEEDED"]).write_text("\n".join(sorted(SUCCEEDED)))
