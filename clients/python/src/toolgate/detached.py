"""Calls that outlive their connection, as handles."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from . import _calls
from ._progress import OnPending
from .models import CallResult, DetachedState

if TYPE_CHECKING:
    from .client import AsyncClient, Client


class DetachedCall:
    """A detached call. It continues when this process ends: `client.tools.detached(invocation_id)` returns it again."""

    def __init__(self, client: Client, invocation_id: str, state: DetachedState | CallResult | None = None) -> None:
        self._client = client
        self._ended = state if isinstance(state, CallResult) else None
        self.invocation_id = invocation_id
        self.state = state if isinstance(state, DetachedState) else None
        """What was known of it when it was detached."""

    def result(self, timeout: float | None = None, *, on_pending: OnPending | None = None) -> Any:
        """Waits for the end of the call and returns the result of the tool. `CallTimeoutError` if it has not ended by
        then; that changes nothing, and this can be called again."""
        return self.call_result(timeout, on_pending=on_pending).result

    def call_result(self, timeout: float | None = None, *, on_pending: OnPending | None = None) -> CallResult:
        """The same with cost, grant and times."""
        if self._ended is None:
            waiting = _calls.detached_result(self._client.core, self.invocation_id, timeout, on_pending)
            self._ended = self._client.run(waiting)
        return self._ended

    def cancel(self) -> None:
        """Cancels the call and its approvals. `ConflictError` if it is being executed or has ended."""
        self._client.run(_calls.cancel(self._client.core, self.invocation_id))

    def delete_result(self) -> None:
        """Deletes the stored result before its time."""
        self._client.run(_calls.delete_result(self._client.core, self.invocation_id))


class AsyncDetachedCall:
    """A detached call. It can be awaited; several times, too."""

    def __init__(
        self, client: AsyncClient, invocation_id: str, state: DetachedState | CallResult | None = None
    ) -> None:
        self._client = client
        self._ended = state if isinstance(state, CallResult) else None
        self.invocation_id = invocation_id
        self.state = state if isinstance(state, DetachedState) else None

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result().__await__()

    async def result(self, timeout: float | None = None, *, on_pending: OnPending | None = None) -> Any:
        return (await self.call_result(timeout, on_pending=on_pending)).result

    async def call_result(self, timeout: float | None = None, *, on_pending: OnPending | None = None) -> CallResult:
        if self._ended is None:
            waiting = _calls.detached_result(self._client.core, self.invocation_id, timeout, on_pending)
            self._ended = await self._client.run(waiting)
        return self._ended

    async def cancel(self) -> None:
        await self._client.run(_calls.cancel(self._client.core, self.invocation_id))

    async def delete_result(self) -> None:
        await self._client.run(_calls.delete_result(self._client.core, self.invocation_id))
