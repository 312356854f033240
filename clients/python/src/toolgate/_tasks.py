"""What a worker does with tasks: it finds one, takes it, and says how it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._core import PAGE, Core
from ._decode import decode
from ._flow import Flow
from ._http import Request, path
from .exceptions import ConflictError, InsufficientToolAccessError, InvalidRequestError, NotFoundError, ToolgateError
from .work import PRIORITIES, Lease, Task

OPEN = ("draft", "active", "blocked")
"""Statuses of intents that can have tasks to work on."""
LONGEST_ERROR = 2000


@dataclass(frozen=True)
class Search:
    """Which tasks a worker takes."""

    capabilities: frozenset[str]
    intent_id: str | None
    lease_seconds: int | None

    def fits(self, task: Task, agent: str) -> bool:
        return task.assigned_agent in (None, agent) and self.capabilities.issuperset(task.capabilities_required)


@dataclass(frozen=True)
class TakenTask:
    task: Task
    lease: Lease | None


class TaskLostError(ToolgateError):
    """The task was taken away from its worker: cancelled, reassigned, overdue, or its lease ended."""


def take_next(core: Core, search: Search) -> Flow[TakenTask | None]:
    """Takes the most urgent task that is ready for this agent, and starts it."""
    agent = yield from core.agent()
    for task in (yield from ready_tasks(core, search, agent)):
        taken = yield from take(core, search, task)
        if taken is not None:
            return taken
    return None


def ready_tasks(core: Core, search: Search, agent: str) -> Flow[list[Task]]:
    if search.intent_id is not None:
        intents = [search.intent_id]
    else:
        intents = []
        for status in OPEN:
            # Ended intents stay, and there may be many of them.
            found = yield from core.pages(dict, "intents", "intents", status=status)
            intents.extend(decode(str, intent.get("id")) for intent in found if intent.get("status") == status)
    tasks: list[Task] = []
    for intent in intents:
        try:
            listed = yield from core.get(list, "intents", intent, "tasks", status="ready", limit=PAGE)
        except NotFoundError:
            # It is no longer one of this agent.
            continue
        tasks.extend(task for item in listed if search.fits(task := decode(Task, item), agent))
    return sorted(tasks, key=lambda task: (PRIORITIES.index(task.priority), task.created_at, task.id))


def take(core: Core, search: Search, task: Task) -> Flow[TakenTask | None]:
    """Claims a task and starts it; `None` if another worker was faster or a required tool is missing."""
    lease = None
    try:
        if search.lease_seconds is None:
            task = yield from core.ask(Task, Request("POST", path("tasks", task.id, "claim")))
        else:
            body = {"scope": task.id, "duration_seconds": search.lease_seconds}
            lease = yield from core.ask(Lease, Request("POST", path("intents", task.intent_id, "leases"), body=body))
            task = yield from core.get(Task, "tasks", task.id)
        task = yield from change(core, task, {"status": "running"})
    except (ConflictError, InsufficientToolAccessError, NotFoundError, TaskLostError):
        return None
    return TakenTask(task, lease)


def renew(core: Core, lease: Lease, seconds: int) -> Flow[None]:
    body = {"duration_seconds": seconds}
    yield from core.exchange(
        Request("PATCH", path("intents", lease.intent_id, "leases", lease.id), body=body, repeatable=True)
    )


def complete(core: Core, task: Task, output: object) -> Flow[Task]:
    """Completes a task; it fails if the gate does not take its output."""
    try:
        return (yield from change(core, task, {"status": "completed", "output": output_of(output)}))
    except (InvalidRequestError, TypeError, ValueError) as error:
        return (yield from fail(core, task, error))


def fail(core: Core, task: Task, error: BaseException) -> Flow[Task]:
    return (yield from change(core, task, {"status": "failed", "error": text_of(error)}))


def change(core: Core, task: Task, changes: Mapping[str, Any]) -> Flow[Task]:
    """Changes a task that this worker has. Others may have changed it since it was read, but not taken it away."""
    while True:
        request = Request(
            "PATCH", path("tasks", task.id), body=changes, headers={"If-Match": str(task.version)}, repeatable=True
        )
        try:
            return (yield from core.ask(Task, request))
        except ConflictError as conflict:
            now = yield from core.get(Task, "tasks", task.id)
            if now.attempt != task.attempt or now.assigned_agent != task.assigned_agent:
                raise lost(now) from conflict
            if now.status == changes["status"] and now.version > task.version:
                # The change was made, and its response lost.
                return now
            if now.version == task.version or now.status != task.status:
                raise lost(now) from conflict
            task = now


def lost(task: Task) -> TaskLostError:
    return TaskLostError(f"the task {task.id} is {task.status} and is assigned to {task.assigned_agent or 'no agent'}")


def output_of(value: object) -> dict[str, Any]:
    """What a worker returned, as the object that an output is."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    # Fails here and not on the way to the gate.
    json.dumps(value, allow_nan=False)
    return {"result": value}


def text_of(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return "".join(letter for letter in text if letter.isprintable() or letter == "\n")[:LONGEST_ERROR]
