"""What an agent may call: all of it, or only what one task was given."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import _calls
from ._calls import CallOptions
from ._core import Core
from ._decode import decode
from ._flow import Flow
from .exceptions import GrantContextError, GrantError, GrantScopeError
from .models import CallResult, Context, DetachedState, Grant, GrantedTool


@dataclass(frozen=True)
class TaskScope:
    """Restricts tools to the grants that are bound to one task, and names it in every call."""

    context: Context

    def holds(self, context: Context) -> bool:
        return context.task_id == self.context.task_id

    def amend(self, options: CallOptions) -> CallOptions:
        own = {"intent_id": self.context.intent_id, "plan_id": self.context.plan_id, "task_id": self.context.task_id}
        return {**options, "context": {**(options.get("context") or {}), **own}}


def granted(core: Core, scope: TaskScope | None, service: str | None) -> Flow[list[GrantedTool]]:
    reply = yield from core.get(dict, "tools", "granted", agent_id=core.agent_id)
    tools = [decode(GrantedTool, tool) for tool in decode(list, reply.get("tools"))]
    return [
        tool
        for tool in tools
        if (service is None or tool.service == service) and (scope is None or scope.holds(tool.context))
    ]


def grants(core: Core, scope: TaskScope | None, service: str | None) -> Flow[list[Grant]]:
    agent = yield from core.agent()
    held = yield from core.pages(Grant, "grants", "grants", agent_id=agent, service=service)
    tools = yield from granted(core, scope, service)
    metadata = {tool.grant_id: tool.metadata for tool in tools}
    return [
        replace(grant, metadata=metadata.get(grant.id, {}))
        for grant in held
        if grant.effective_status == "active" and (scope is None or scope.holds(grant.effective.context))
    ]


def call(core: Core, scope: TaskScope | None, name: str, options: CallOptions) -> Flow[CallResult]:
    if scope is None:
        return (yield from _calls.call(core, name, options))
    candidates = yield from candidates_of(core, scope, name, options)
    options = scope.amend({**options, "idempotency_key": _calls.key_of(options)})
    for grant_id in candidates[:-1]:
        try:
            return (yield from _calls.call(core, name, {**options, "grant_id": grant_id}))
        except GrantError:
            # The next grant of the task may allow it, as when the gate selects among all grants.
            continue
    return (yield from _calls.call(core, name, {**options, "grant_id": candidates[-1]}))


def call_detached(
    core: Core, scope: TaskScope | None, name: str, options: CallOptions
) -> Flow[DetachedState | CallResult]:
    if scope is not None:
        candidates = yield from candidates_of(core, scope, name, options)
        options = scope.amend({**options, "grant_id": candidates[0]})
    return (yield from _calls.call_detached(core, name, options))


def candidates_of(core: Core, scope: TaskScope, name: str, options: CallOptions) -> Flow[list[str]]:
    """The grants of the task that allow the tool, in the order in which the gate lists them; at least one."""
    tools = yield from granted(core, scope, None)
    wanted = options.get("grant_id")
    if wanted is not None:
        if any(tool.grant_id == wanted for tool in tools):
            return [wanted]
        raise GrantContextError(
            f"the grant {wanted} is not bound to the task {scope.context.task_id}",
            code="GRANT_CONTEXT_MISMATCH",
            details={"grant_id": wanted},
        )
    found = [tool.grant_id for tool in tools if name in (tool.name, tool.alias)]
    if not found:
        # A name without its service is meant if only one tool of the task has it.
        short = [tool for tool in tools if name in (tool.tool, tool.scope)]
        found = [tool.grant_id for tool in short] if len({tool.name for tool in short}) == 1 else []
    if not found:
        service = name.split(".", 1)[0]
        available = sorted({tool.scope for tool in tools if tool.service == service})
        raise GrantScopeError(
            f"no grant of the task {scope.context.task_id} allows {name}",
            code="GRANT_SCOPE_INSUFFICIENT",
            details={"available_scopes": available},
        )
    return list(dict.fromkeys(found))
