"""Workers when something fails between them and the gate, against a gate that is played."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import pytest

from toolgate import Client, Retry, Worker
from toolgate.exceptions import AuthenticationError, TransportError
from toolgate.worker import TaskLostError

TIME = "2026-03-08T10:00:00.000+00:00"


class PlayedGate:
    """One intent with one task. `fail` has what happens to the next request of a method instead of its response."""

    def __init__(self) -> None:
        self.task: dict[str, Any] = {
            "id": "task_1",
            "intent_id": "intent_1",
            "plan_id": None,
            "name": "read",
            "description": None,
            "version": 1,
            "status": "ready",
            "priority": "normal",
            "input": {},
            "output": None,
            "artifacts": [],
            "assigned_agent": None,
            "lease_id": None,
            "capabilities_required": [],
            "depends_on": [],
            "blocks": [],
            "parent_task_id": None,
            "requires_tools": [],
            "timeout_seconds": None,
            "deadline": None,
            "attempt": 1,
            "max_attempts": 3,
            "permissions": "inherit",
            "blocked_reason": None,
            "error": None,
            "metadata": {},
            "created_by": "lead",
            "created_at": TIME,
            "started_at": None,
            "completed_at": None,
        }
        self.requests: list[tuple[str, str]] = []
        self.renewals = 0
        self.listed: list[str] = []
        self.lose_response_of: list[str] = []
        self.refuse: dict[str, tuple[int, str]] = {}

    def __call__(self, request: httpx.Request) -> httpx.Response:
        name = f"{request.method} {request.url.path.removeprefix('/api/v1')}"
        self.requests.append((request.method, name))
        if name == "GET /intents":
            self.listed.append(request.url.params["status"])
        body = json.loads(request.content or "null")
        if name in self.refuse:
            status, code = self.refuse[name]
            return httpx.Response(status, json={"error": {"code": code, "message": "no"}})
        response = self.respond(name, body, request.headers)
        wanted = f"{name} {body['status']}" if isinstance(body, dict) and "status" in body else name
        if wanted in self.lose_response_of:
            self.lose_response_of.remove(wanted)
            raise httpx.ReadError("reset")
        return response

    def respond(self, name: str, body: Any, headers: httpx.Headers) -> httpx.Response:
        if name == "GET /whoami":
            return httpx.Response(200, json={"id": "worker"})
        if name == "GET /intents":
            intents = [{"id": "intent_1", "status": "active"}, {"id": "intent_2", "status": "completed"}]
            return httpx.Response(200, json={"intents": intents, "next_cursor": None})
        if name == "GET /intents/intent_1/tasks":
            return httpx.Response(200, json=[self.task] if self.task["status"] == "ready" else [])
        if name == "POST /intents/intent_1/leases":
            self.task.update(status="claimed", assigned_agent="worker", version=self.task["version"] + 1)
            return httpx.Response(201, json=self.lease())
        if name == "PATCH /intents/intent_1/leases/lease_1":
            self.renewals += 1
            return httpx.Response(200, json=self.lease())
        if name == "GET /tasks/task_1":
            return httpx.Response(200, json=self.task)
        assert name == "PATCH /tasks/task_1", name
        if int(headers["if-match"]) != self.task["version"]:
            return httpx.Response(409, json={"error": {"code": "VERSION_CONFLICT", "message": "no"}})
        self.task.update(body, version=self.task["version"] + 1)
        return httpx.Response(200, json=self.task)

    def lease(self) -> dict[str, Any]:
        return {
            "id": "lease_1",
            "intent_id": "intent_1",
            "task_id": "task_1",
            "agent_id": "worker",
            "scope": "task_1",
            "status": "active",
            "created_at": TIME,
            "acquired_at": TIME,
            "expires_at": TIME,
            "released_at": None,
        }

    def client(self, **options: Any) -> Client:
        http = httpx.Client(transport=httpx.MockTransport(self))
        retry = Retry(random=lambda: 0.0)
        return Client("http://gate", "key", http=http, sleep=lambda seconds: None, retry=retry, **options)


@pytest.fixture
def gate() -> PlayedGate:
    return PlayedGate()


@Worker()
def process(ctx):
    return {"attempt": ctx.task.attempt}


def test_only_open_intents_are_listed(gate):
    with gate.client() as client:
        process.run_once(client)
    assert gate.listed == ["draft", "active", "blocked"]


def test_a_change_whose_response_is_lost_is_made_once(gate):
    gate.lose_response_of = ["PATCH /tasks/task_1 running", "PATCH /tasks/task_1 completed"]
    with gate.client() as client:
        ended = process.run_once(client)
    assert (ended.status, ended.output) == ("completed", {"attempt": 1})
    # ready, claimed, running, completed.
    assert gate.task["version"] == 4


def test_a_claim_whose_response_is_lost_is_not_repeated(gate):
    gate.lose_response_of = ["POST /intents/intent_1/leases"]
    with gate.client() as client, pytest.raises(TransportError):
        process.run_once(client)
    assert [method for method, name in gate.requests if name.endswith("/leases")] == ["POST"]


def test_what_another_worker_was_faster_to_take_is_left_to_it(gate):
    for refused in ((409, "LEASE_HELD"), (403, "INSUFFICIENT_TOOL_ACCESS"), (404, "INTENT_NOT_FOUND")):
        gate.refuse = {"POST /intents/intent_1/leases": refused}
        with gate.client() as client:
            assert process.run_once(client) is None


def test_a_task_that_was_given_to_somebody_else_is_lost(gate):
    @Worker()
    def slow(ctx):
        gate.task.update(assigned_agent="other", version=gate.task["version"] + 1)

    with gate.client() as client, pytest.raises(TaskLostError, match="is assigned to other"):
        slow.run_once(client)


def test_a_worker_goes_on_when_the_gate_is_away_for_a_while(gate, caplog):
    away = [httpx.ConnectError("refused")] * 4

    @Worker(poll_seconds=0)
    def once(ctx):
        once.stop()

    def sometimes(request: httpx.Request) -> httpx.Response:
        if away:
            raise away.pop()
        return gate(request)

    http = httpx.Client(transport=httpx.MockTransport(sometimes))
    with (
        Client("http://gate", "key", http=http, sleep=lambda seconds: None) as client,
        caplog.at_level(logging.WARNING),
    ):
        once.run(client)
    assert "could not be reached" in caplog.text
    assert gate.task["status"] == "completed"


def test_a_worker_whose_key_is_revoked_ends(gate):
    gate.refuse = {"GET /intents": (401, "KEY_REVOKED")}
    with gate.client() as client, pytest.raises(AuthenticationError):
        process.run(client)


def test_an_interrupted_worker_fails_its_task(gate):
    @Worker()
    def interrupted(ctx):
        raise KeyboardInterrupt

    with gate.client() as client, pytest.raises(KeyboardInterrupt):
        interrupted.run(client)
    assert (gate.task["status"], gate.task["error"]) == ("failed", "KeyboardInterrupt")


def test_errors_are_texts_that_the_gate_takes(gate):
    @Worker()
    def loud(ctx):
        raise RuntimeError("\x1b[31m" + "x" * 9000)

    with gate.client() as client:
        ended = loud.run_once(client)
    assert ended.error.startswith("RuntimeError: [31mxxx") and len(ended.error) == 2000


@pytest.mark.parametrize(
    ("returned", "output"), [(None, {}), ({"a": 1}, {"a": 1}), ([1], {"result": [1]}), ("text", {"result": "text"})]
)
def test_what_a_function_returns_becomes_an_object(gate, returned, output):
    with gate.client() as client:
        assert Worker()(lambda ctx: returned).run_once(client).output == output


def test_what_is_no_json_fails_the_task(gate):
    with gate.client() as client:
        ended = Worker()(lambda ctx: object()).run_once(client)
    assert ended.status == "failed" and "not JSON serializable" in ended.error
