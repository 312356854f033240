"""How tools are called: the request, what is waited for, and the result."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict

from ._core import Core
from ._decode import decode
from ._flow import Flow
from ._http import Request, Response, path, query
from ._progress import QUIET_SECONDS, OnPending, Watch
from .exceptions import CallTimeoutError, TransportError
from .models import CallResult, DetachedState

INVOKE = path("tools", "invoke")
POLL_SECONDS = 30
"""How long the gate holds one request for the result of a detached call."""


class CallOptions(TypedDict, total=False):
    """How a tool is called, besides its name."""

    parameters: Mapping[str, Any] | None
    grant_id: str | None
    """The grant to use; the gate selects one if absent."""
    idempotency_key: str | None
    """The same call with the same key is executed once. One is made for each call if absent."""
    context: Mapping[str, str | None] | None
    """What the call belongs to: `intent_id`, `plan_id`, `task_id`, `run_id`, `session_id`."""
    version: str | None
    """Of the service's definition."""
    reasoning: str | None
    """Why the agent makes the call, for policies and guardians."""
    call_id: str | None
    """The caller's own name for the call, which approvers see."""
    approval_session: Mapping[str, str] | None
    """The conversation that the call belongs to: `name`, `workspace`."""
    approval_ttl_seconds: int | None
    """How long the call may wait for an approver."""
    timeout: float | None
    """How long to wait for the result, in seconds. A call that waits for an approver is then cancelled, unless it is
    detached."""
    on_pending: OnPending | None
    """Called once for each approval that the call waits for."""


def name_of(service: str, tool: str | None) -> str:
    """`stripe` and `charges.read`, or `stripe.charges.read`."""
    return service if tool is None else f"{service}.{tool}"


def body_of(name: str, options: CallOptions) -> dict[str, Any]:
    known = ("parameters", "grant_id", "version", "reasoning", "call_id", "approval_session", "approval_ttl_seconds")
    unknown = set(options) - set(CallOptions.__annotations__)
    if unknown:
        raise TypeError(
            f"unknown argument {', '.join(sorted(unknown))}; parameters of the tool go into parameters={{}}"
        )
    body: dict[str, Any] = {"tool": name}
    body.update({member: value for member in known if (value := options.get(member)) is not None})
    context = {part: value for part, value in (options.get("context") or {}).items() if value is not None}
    if context:
        body["context"] = context
    body["idempotency_key"] = key_of(options)
    return body


def key_of(options: CallOptions) -> str:
    """Under which the call is executed once, however often it is sent."""
    return options.get("idempotency_key") or f"py-{uuid.uuid4().hex}"


def call(core: Core, name: str, options: CallOptions) -> Flow[CallResult]:
    """Calls a tool and waits for its result, whether the gate keeps the call on its connection or detaches it."""
    timeout = options.get("timeout") or core.call_timeout
    deadline = core.clock() + timeout
    body = body_of(name, options)
    watch = Watch(core, options.get("on_pending"), deadline)
    request = Request("POST", INVOKE, body=body, repeatable=True, read_timeout=timeout)
    try:
        response = yield from core.exchange(watch.amend(request), by=watch.exchange, deadline=deadline)
        if response.status == 202:
            response = yield from result_of(core, decode(DetachedState, response.json()).invocation_id, watch)
    except TransportError as error:
        error.idempotency_key = body["idempotency_key"]
        if core.clock() < deadline or error.invocation_id is not None:
            raise
        text = f"the call did not end within {timeout:g} seconds, and was cancelled unless it was executed already"
        late = CallTimeoutError(text)
        late.idempotency_key = error.idempotency_key
        raise late from error
    return decode(CallResult, response.json())


def call_detached(core: Core, name: str, options: CallOptions) -> Flow[DetachedState | CallResult]:
    """Detaches a call. The same call with the same key may have ended: then this is its result."""
    request = Request("POST", INVOKE, body=body_of(name, options), repeatable=True, headers={"Prefer": "respond-async"})
    response = yield from core.exchange(request)
    if response.status == 202:
        return decode(DetachedState, response.json())
    return decode(CallResult, response.json())


def detached_result(
    core: Core, invocation_id: str, timeout: float | None, on_pending: OnPending | None
) -> Flow[CallResult]:
    deadline = math.inf if timeout is None else core.clock() + timeout
    response = yield from result_of(core, invocation_id, Watch(core, on_pending, deadline))
    return decode(CallResult, response.json())


def result_of(core: Core, invocation_id: str, watch: Watch) -> Flow[Response]:
    """Waits for the end of a detached call."""
    request = Request("GET", path("invocations", invocation_id, "result"), repeatable=True)
    while True:
        left = max(0.0, watch.deadline - core.clock())
        wait = min(POLL_SECONDS, math.ceil(left)) if left < POLL_SECONDS else POLL_SECONDS
        polled = replace(request, query=query(wait_seconds=wait or None), read_timeout=wait + QUIET_SECONDS)
        try:
            response = yield from core.exchange(
                watch.amend(polled), by=watch.exchange, is_final=lambda response: is_outcome(response, invocation_id)
            )
        except CallTimeoutError:
            raise still_open(invocation_id) from None
        if response.status != 202:
            return response
        if core.clock() >= watch.deadline:
            raise still_open(invocation_id)


def is_outcome(response: Response, invocation_id: str) -> bool:
    """Whether this is how the call ended, and not about the request for it."""
    body = response.json()
    return isinstance(body, Mapping) and body.get("invocation_id") == invocation_id


def still_open(invocation_id: str) -> CallTimeoutError:
    return CallTimeoutError("the call has not ended; it continues without a connection", invocation_id=invocation_id)


def cancel(core: Core, invocation_id: str) -> Flow[None]:
    yield from core.exchange(Request("POST", path("invocations", invocation_id, "cancel"), repeatable=True))


def delete_result(core: Core, invocation_id: str) -> Flow[None]:
    yield from core.exchange(Request("DELETE", path("invocations", invocation_id, "result")))
