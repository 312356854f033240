"""The namespace `client.tools`: what the agent may call, and calling it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _listing
from ._calls import CallOptions, name_of
from ._listing import TaskScope
from .detached import AsyncDetachedCall, DetachedCall
from .models import CallResult, Grant, GrantedTool

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .client import AsyncClient, Client


class Tools:
    """The tools of the agent; in a worker those of the current task."""

    def __init__(self, client: Client, scope: TaskScope | None = None) -> None:
        self._client = client
        self._scope = scope

    def list(self, service: str | None = None) -> Sequence[GrantedTool]:
        """The tools that may be called now, each with the grant that allows it."""
        return self._client.run(_listing.granted(self._client.core, self._scope, service))

    def grants(self, service: str | None = None) -> Sequence[Grant]:
        """The active grants of the agent, for callers that choose one themselves."""
        return self._client.run(_listing.grants(self._client.core, self._scope, service))

    def invoke(self, service: str, tool: str | None = None, /, **options: Unpack[CallOptions]) -> Any:
        """Calls a tool and returns its result: `invoke("stripe", "charges.read", parameters={...})`, or
        `invoke("stripe.charges.read", ...)`. `CallOptions` has all arguments."""
        return self.call(service, tool, **options).result

    def call(self, service: str, tool: str | None = None, /, **options: Unpack[CallOptions]) -> CallResult:
        """The same with cost, grant and times."""
        name = name_of(service, tool)
        return self._client.run(_listing.call(self._client.core, self._scope, name, options))

    def invoke_detached(self, service: str, tool: str | None = None, /, **options: Unpack[CallOptions]) -> DetachedCall:
        """Calls a tool without waiting: the call continues when this process ends."""
        name = name_of(service, tool)
        state = self._client.run(_listing.call_detached(self._client.core, self._scope, name, options))
        return DetachedCall(self._client, state.invocation_id, state)

    def detached(self, invocation_id: str) -> DetachedCall:
        """A call that was detached earlier."""
        return DetachedCall(self._client, invocation_id)


class AsyncTools:
    """The same for asynchronous code."""

    def __init__(self, client: AsyncClient, scope: TaskScope | None = None) -> None:
        self._client = client
        self._scope = scope

    async def list(self, service: str | None = None) -> Sequence[GrantedTool]:
        return await self._client.run(_listing.granted(self._client.core, self._scope, service))

    async def grants(self, service: str | None = None) -> Sequence[Grant]:
        return await self._client.run(_listing.grants(self._client.core, self._scope, service))

    async def invoke(self, service: str, tool: str | None = None, /, **options: Unpack[CallOptions]) -> Any:
        return (await self.call(service, tool, **options)).result

    async def call(self, service: str, tool: str | None = None, /, **options: Unpack[CallOptions]) -> CallResult:
        name = name_of(service, tool)
        return await self._client.run(_listing.call(self._client.core, self._scope, name, options))

    async def invoke_detached(
        self, service: str, tool: str | None = None, /, **options: Unpack[CallOptions]
    ) -> AsyncDetachedCall:
        name = name_of(service, tool)
        state = await self._client.run(_listing.call_detached(self._client.core, self._scope, name, options))
        return AsyncDetachedCall(self._client, state.invocation_id, state)

    def detached(self, invocation_id: str) -> AsyncDetachedCall:
        return AsyncDetachedCall(self._client, invocation_id)
