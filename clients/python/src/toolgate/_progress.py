"""What happens to a call before its result: who is asked, and the lines in which the gate says so."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from . import _flow as flow
from ._core import Core
from ._decode import decode
from ._flow import Flow
from ._http import JSON, LINES, Request, Response, path
from .exceptions import CallTimeoutError, NotFoundError, TransportError
from .models import DetachedState, PendingApproval

QUIET_SECONDS = 60.0
"""The gate writes a line at least every 15 seconds: without one for this time, the connection is dead."""

OnPending = Callable[[PendingApproval], object]


class Watch:
    """Waits for a call, and tells its caller once about each approval that it waits for."""

    def __init__(self, core: Core, callback: OnPending | None, deadline: float) -> None:
        self.core = core
        self.callback = callback
        self.deadline = deadline
        self.told: set[str] = set()

    def amend(self, request: Request) -> Request:
        """Requests progress lines, if somebody wants to know."""
        if self.callback is None:
            return request
        quiet = QUIET_SECONDS
        if not math.isinf(self.deadline):
            quiet = min(quiet, max(1.0, self.deadline - self.core.clock()))
        query = {name: value for name, value in request.query.items() if name != "wait_seconds"}
        headers = {**request.headers, "Accept": f"{LINES}, {JSON}"}
        return replace(request, query=query, headers=headers, read_timeout=quiet)

    def exchange(self, request: Request) -> Flow[Response]:
        """Sends a request and follows the progress to the line with the response, if there are lines."""
        if self.callback is None:
            return (yield from flow.send(request))
        lines = yield from flow.open_lines(request)
        try:
            if not lines.head.is_lines:
                return (yield from flow.read_all(lines))
            while (line := (yield from flow.next_line(lines))) is not None:
                if line.strip():
                    response = yield from self.take(read_step(line), lines.head)
                    if response is not None:
                        return response
                if self.core.clock() >= self.deadline:
                    raise CallTimeoutError("the call did not end in time")
        finally:
            yield flow.CloseLines(lines)
        raise TransportError("the connection ended before the call did")

    def take(self, step: Mapping[str, Any], head: Response) -> Flow[Response | None]:
        event = step.get("event")
        if event == "asked":
            yield from self.tell(decode(dict, step.get("approval")))
        elif event == "state":
            yield from self.see(decode(DetachedState, step.get("call")))
        elif event == "answered":
            return answered(step, head)
        return None

    def tell(self, approval: Mapping[str, Any]) -> Flow[None]:
        pending = pending_approval(self.core, approval)
        if self.callback is not None and pending.approval_id not in self.told:
            self.told.add(pending.approval_id)
            yield flow.Notify(self.callback, pending)

    def see(self, state: DetachedState) -> Flow[None]:
        """Looks up what a detached call waits for."""
        for approval_id in state.approval_ids if state.status == "waiting" else ():
            if approval_id in self.told:
                continue
            approval: Mapping[str, Any] = {"id": approval_id, "tool": state.tool_name}
            with suppress(NotFoundError):
                approval = yield from self.core.get(dict, "approvals", approval_id)
            yield from self.tell({"invocation_id": state.invocation_id, **approval})


def pending_approval(core: Core, approval: Mapping[str, Any]) -> PendingApproval:
    approval_id = decode(str, approval.get("id"))
    members = {name: value for name, value in approval.items() if name != "id"}
    url = core.server_url + path("approvals", approval_id)
    members.update(approval_id=approval_id, url=url, details=dict(approval))
    return decode(PendingApproval, members)


def read_step(line: str) -> dict[str, Any]:
    try:
        step = json.loads(line)
    except ValueError as error:
        raise TransportError("the connection ended within a line") from error
    return decode(dict, step)


def answered(step: Mapping[str, Any], head: Response) -> Response:
    """The response that the call would have had without lines."""
    body = step.get("body")
    headers = dict(head.headers)
    error = body.get("error") if isinstance(body, Mapping) else None
    seconds = error.get("retry_after_seconds") if isinstance(error, Mapping) else None
    if isinstance(seconds, int):
        headers["retry-after"] = str(seconds)
    return Response(decode(int, step.get("status")), headers, json.dumps(body).encode())
