"""The tools of an agent for one framework."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._calls import CallOptions
from .._progress import OnPending
from ..exceptions import ToolgateError
from ..models import GrantedTool
from .adapter import FOR_PROGRAMS, Adapter, Outcome, ToolCall, refused, unknown, unreadable

if TYPE_CHECKING:
    from ..tools import AsyncTools, Tools

LABEL = re.compile(r"[A-Za-z0-9._:@-]{1,128}")


class _Definitions(list[Any]):
    """The definitions, as a list that the framework takes."""

    def __init__(self, adapter: Adapter, listed: Sequence[GrantedTool], on_pending: OnPending | None) -> None:
        super().__init__()
        self.names: dict[str, str] = {tool.alias: tool.name for tool in listed}
        """The full name of each tool, by the name that the model sees."""
        self._adapter = adapter
        self._on_pending = on_pending
        self._tools = list({tool.alias: tool for tool in listed}.values())

    def _options(self, call: ToolCall) -> CallOptions:
        options: CallOptions = {"parameters": call.arguments, "on_pending": self._on_pending}
        if LABEL.fullmatch(call.id):
            options["call_id"] = call.id
        return options

    def _reject(self, call: ToolCall) -> Outcome | None:
        if call.alias not in self.names:
            return unknown(call.alias)
        return unreadable() if call.arguments is None else None


class Toolset(_Definitions):
    """The definitions of the tools: a list to pass to the framework. `execute` runs a call of its model."""

    def __init__(
        self, adapter: Adapter, tools: Tools, listed: Sequence[GrantedTool], on_pending: OnPending | None
    ) -> None:
        super().__init__(adapter, listed, on_pending)
        self._calls = tools
        self.extend(adapter.define(tool, self._run, None) for tool in self._tools)

    def execute(self, tool_call: Any) -> Any:
        """Runs one tool call of a model and returns the message with its result. A refusal becomes a result that says
        why; only what a model cannot change is raised: a key that is not accepted, a stopped agent, no connection."""
        call = self._adapter.read(tool_call)
        return self._adapter.write(call, self._outcome(call))

    def _run(self, alias: str, arguments: dict[str, Any]) -> Outcome:
        return self._outcome(ToolCall("", alias, arguments))

    def _outcome(self, call: ToolCall) -> Outcome:
        rejected = self._reject(call)
        if rejected is not None:
            return rejected
        try:
            return Outcome(self._calls.invoke(self.names[call.alias], **self._options(call)))
        except FOR_PROGRAMS:
            raise
        except ToolgateError as error:
            return refused(error)


class AsyncToolset(_Definitions):
    """The same for asynchronous code."""

    def __init__(
        self, adapter: Adapter, tools: AsyncTools, listed: Sequence[GrantedTool], on_pending: OnPending | None
    ) -> None:
        super().__init__(adapter, listed, on_pending)
        self._calls = tools
        self.extend(adapter.define(tool, None, self._run) for tool in self._tools)

    async def execute(self, tool_call: Any) -> Any:
        call = self._adapter.read(tool_call)
        return self._adapter.write(call, await self._outcome(call))

    async def _run(self, alias: str, arguments: dict[str, Any]) -> Outcome:
        return await self._outcome(ToolCall("", alias, arguments))

    async def _outcome(self, call: ToolCall) -> Outcome:
        rejected = self._reject(call)
        if rejected is not None:
            return rejected
        try:
            return Outcome(await self._calls.invoke(self.names[call.alias], **self._options(call)))
        except FOR_PROGRAMS:
            raise
        except ToolgateError as error:
            return refused(error)
