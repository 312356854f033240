"""The gate that a script drives, through its HTTP API: what its administrator and its approver do meanwhile."""

import os

import httpx2

URL, KEY, APPROVER = os.environ["TOOLGATE_URL"], os.environ["AGENT_KEY"], os.environ["APPROVER_KEY"]
ADMIN, GRANT = os.environ["ADMIN_KEY"], os.environ["GRANT"]
MCP = f"{URL}/mcp"


def api(key, method, path, body=None):
    headers = {"Authorization": f"Bearer {key}"}
    with httpx2.Client(base_url=URL, headers=headers, trust_env=False) as client:
        return client.request(method, path, json=body).raise_for_status().json()


def approve_first():
    """Waits for a call that waits, and approves it."""
    while not (pending := api(APPROVER, "GET", "/api/v1/approvals?status=pending")["approvals"]):
        pass
    api(APPROVER, "POST", f"/api/v1/approvals/{pending[0]['id']}/decide", {"decision": "approve"})


def executed(tool):
    """How many calls of a tool were executed."""
    found = api(ADMIN, "GET", "/api/v1/invocations?agent_id=teller&limit=100")["invocations"]
    return sum(1 for call in found if call["tool"] == tool and call["status"] == "success")


def approve_and_run(tool):
    """Approves the call that waits, and returns when it was executed."""
    before = executed(tool)
    approve_first()
    while executed(tool) == before:
        pass


def suspend():
    api(ADMIN, "PATCH", f"/api/v1/grants/{GRANT}/suspend", {"reason": "a test"})


def revoke():
    api(ADMIN, "DELETE", f"/api/v1/grants/{GRANT}")


def resume():
    api(ADMIN, "PATCH", f"/api/v1/grants/{GRANT}/resume")
