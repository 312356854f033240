"""Requests are repeated only where that is safe, so often and so long as was said. Time is that of the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from toolgate import AsyncClient, Client, Retry
from toolgate.exceptions import (
    CallTimeoutError,
    ConflictError,
    LedgerUnavailableError,
    RateLimitError,
    ResponseError,
    TransportError,
    UnavailableError,
)

SUCCESS = {
    "invocation_id": "inv_1",
    "status": "success",
    "tool_name": "a.b",
    "grant_id": None,
    "result": {"done": True},
    "error": None,
    "cost": {"api_units": 1, "estimated_cost_usd": None},
    "duration_ms": 1,
    "timestamp": "2026-03-08T10:00:00.000+00:00",
}


def refusal(status: int, code: str, retry_after: int | None = None) -> httpx.Response:
    error: dict[str, Any] = {"code": code, "message": "no"}
    headers = {"x-request-id": "req-1"}
    if retry_after is not None:
        error["retry_after_seconds"] = retry_after
        headers["Retry-After"] = str(retry_after)
    return httpx.Response(status, json={"status": "denied", "error": error}, headers=headers)


def success(result: object = None) -> httpx.Response:
    return httpx.Response(200, json={**SUCCESS, "result": result or {"done": True}})


class Script:
    """Responses and failures in order, and a clock that only sleeping moves."""

    def __init__(self, *steps: httpx.Response | Exception | Callable[[], httpx.Response]) -> None:
        self.steps = list(steps)
        self.requests: list[httpx.Request] = []
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, httpx.Response) else step()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    def invoke(self, kind: str, retry: Retry | None = None, **options: Any) -> Any:
        settings: dict[str, Any] = {
            "retry": retry or Retry(random=lambda: 0.0),
            "sleep": self.sleep,
            "clock": lambda: self.now,
        }
        if kind == "blocking":
            http = httpx.Client(transport=httpx.MockTransport(self))
            with Client("http://gate", "key", http=http, **settings) as client:
                return client.tools.invoke("a", "b", **options)

        async def run() -> Any:
            http = httpx.AsyncClient(transport=httpx.MockTransport(self))
            async with AsyncClient("http://gate", "key", http=http, **settings) as client:
                return await client.tools.invoke("a", "b", **options)

        return asyncio.run(run())

    def list(self) -> Any:
        http = httpx.Client(transport=httpx.MockTransport(self))
        with Client("http://gate", "key", http=http, sleep=self.sleep, clock=lambda: self.now) as client:
            return client.tools.list()


both = pytest.mark.parametrize("kind", ["blocking", "asynchronous"])


@both
def test_a_lost_connection_is_repeated_with_the_same_key(kind):
    script = Script(httpx.ReadError("reset"), httpx.ConnectError("refused"), success())
    assert script.invoke(kind) == {"done": True}
    keys = {body["idempotency_key"] for body in script.bodies}
    assert len(keys) == 1 and len(script.requests) == 3
    assert script.slept == [0.2, 0.4]


@both
def test_two_calls_have_two_keys(kind):
    script = Script(success(), success())
    script.invoke(kind)
    script.invoke(kind)
    first, second = (body["idempotency_key"] for body in script.bodies)
    assert first != second


@both
def test_a_refusal_that_says_when_to_come_again_is_waited_for(kind):
    script = Script(refusal(429, "REQUEST_RATE_LIMITED", 7), refusal(503, "OVERLOADED", 2), success())
    assert script.invoke(kind) == {"done": True}
    assert script.slept == [7, 2]


@both
def test_a_refusal_that_does_not_say_when_is_final(kind):
    script = Script(refusal(503, "LEDGER_UNAVAILABLE"))
    with pytest.raises(LedgerUnavailableError):
        script.invoke(kind)
    script = Script(refusal(429, "TOO_MANY_APPROVALS"))
    with pytest.raises(RateLimitError):
        script.invoke(kind)
    assert script.slept == []


@both
def test_the_number_of_attempts_is_limited(kind):
    script = Script(*[refusal(503, "OVERLOADED", 1)] * 3)
    with pytest.raises(UnavailableError) as refused:
        script.invoke(kind, Retry(attempts=3))
    assert refused.value.request_id == "req-1"
    assert script.slept == [1, 1]


@both
def test_the_time_for_attempts_is_limited(kind):
    script = Script(refusal(429, "GRANT_RATE_LIMITED", 3000))
    with pytest.raises(RateLimitError) as refused:
        script.invoke(kind)
    assert refused.value.retry_after_seconds == 3000
    script = Script(refusal(503, "OVERLOADED", 20), refusal(503, "OVERLOADED", 20), refusal(503, "OVERLOADED", 30))
    with pytest.raises(UnavailableError):
        script.invoke(kind, Retry(attempts=9, total_seconds=60))
    assert script.slept == [20, 20]
    script = Script(refusal(503, "OVERLOADED", 20))
    with pytest.raises(UnavailableError):
        script.invoke(kind, timeout=10)


@both
def test_an_attempt_whose_connection_was_lost_is_waited_for(kind):
    script = Script(httpx.ReadError("reset"), refusal(409, "IDEMPOTENCY_IN_PROGRESS", 1), success())
    assert script.invoke(kind) == {"done": True}
    # A key of the caller that is in flight elsewhere is not.
    script = Script(refusal(409, "IDEMPOTENCY_IN_PROGRESS", 1))
    with pytest.raises(ConflictError):
        script.invoke(kind, idempotency_key="mine")


@both
def test_without_an_outcome_the_error_has_the_key(kind):
    script = Script(*[httpx.ReadError("reset")] * 4)
    with pytest.raises(TransportError) as lost:
        script.invoke(kind)
    assert lost.value.idempotency_key == script.bodies[0]["idempotency_key"]
    assert lost.value.sent and not isinstance(lost.value, CallTimeoutError)
    script = Script(*[httpx.ConnectError("refused")] * 4)
    with pytest.raises(TransportError) as lost:
        script.invoke(kind, idempotency_key="mine")
    assert not lost.value.sent and lost.value.idempotency_key == "mine"


@both
def test_a_call_that_takes_too_long_is_a_timeout(kind):
    script = Script()

    def hang() -> httpx.Response:
        script.now += 600
        raise httpx.ReadTimeout("")

    script.steps = [hang]
    with pytest.raises(TimeoutError) as late:
        script.invoke(kind)
    assert isinstance(late.value, CallTimeoutError)
    assert late.value.idempotency_key and len(script.requests) == 1


@both
def test_lines_that_end_early_are_repeated(kind):
    asked = {"event": "asked", "approval": {"id": "appr_1", "tool": "a.b"}}
    answered = {"event": "answered", "status": 200, "body": SUCCESS}
    lines = {"content-type": "application/x-ndjson"}
    cut = httpx.Response(200, headers=lines, text=json.dumps(asked) + '\n{"event": "wai')
    whole = httpx.Response(200, headers=lines, text=json.dumps(asked) + "\n\n" + json.dumps(answered) + "\n")
    script, told = Script(cut, whole), []
    assert script.invoke(kind, on_pending=told.append) == {"done": True}
    assert [pending.approval_id for pending in told] == ["appr_1"]


@both
def test_a_refusal_in_lines_is_waited_for_too(kind):
    error = {"code": "OVERLOADED", "message": "no", "retry_after_seconds": 3}
    refused = {"event": "answered", "status": 503, "body": {"status": "denied", "error": error}}
    lines = httpx.Response(200, headers={"content-type": "application/x-ndjson"}, text=json.dumps(refused) + "\n")
    script = Script(lines, success())
    assert script.invoke(kind, on_pending=print) == {"done": True}
    assert script.slept == [3]


def test_reading_is_repeated_and_changing_is_not():
    script = Script(httpx.ReadError("reset"), httpx.Response(200, json={"agent_id": "a", "tools": []}))
    assert script.list() == []
    with (
        Client(
            "http://gate", "key", http=httpx.Client(transport=httpx.MockTransport(Script(httpx.ReadError("x"))))
        ) as c,
        pytest.raises(TransportError),
    ):
        c.tools.detached("inv_1").delete_result()


def test_the_outcome_of_a_detached_call_is_not_taken_for_a_refusal_of_the_request():
    body = {"status": "denied", "invocation_id": "inv_1", "error": {"code": "GRANT_RATE_LIMITED", "message": "no"}}
    script = Script(httpx.Response(429, json=body, headers={"Retry-After": "1"}))
    http = httpx.Client(transport=httpx.MockTransport(script))
    with Client("http://gate", "key", http=http, sleep=script.sleep) as client, pytest.raises(RateLimitError):
        client.tools.detached("inv_1").result()
    assert script.slept == []


def test_something_else_at_the_address_is_said_so():
    for response in (httpx.Response(404, text="<html>"), httpx.Response(302), httpx.Response(200, text="hello")):
        with pytest.raises(ResponseError):
            Script(response).list()


def test_jitter_makes_waits_shorter_and_never_longer():
    script = Script(*[httpx.ConnectError("refused")] * 3, success())
    script.invoke("blocking", Retry(random=lambda: 1.0))
    assert script.slept == [0.1, 0.2, 0.4]
