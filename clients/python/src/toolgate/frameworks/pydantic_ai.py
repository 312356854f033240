"""Pydantic AI: tools, which its agents call themselves, and tool returns."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Tool
from pydantic_ai.messages import ToolReturnPart

from ..models import GrantedTool
from .adapter import AsyncRun, Outcome, Run, ToolCall, arguments_of, description_of, member, schema_of


class PydanticAI:
    def define(self, tool: GrantedTool, run: Run | None, run_async: AsyncRun | None) -> Tool[Any]:
        def call(**arguments: Any) -> Any:
            assert run is not None
            return run(tool.alias, arguments).content

        async def call_async(**arguments: Any) -> Any:
            assert run_async is not None
            return (await run_async(tool.alias, arguments)).content

        function = call if run is not None else call_async
        defined: Tool[Any] = Tool.from_schema(function, tool.alias, description_of(tool), schema_of(tool))
        return defined

    def read(self, call: Any) -> ToolCall:
        return ToolCall(
            str(member(call, "tool_call_id")), str(member(call, "tool_name")), arguments_of(member(call, "args"))
        )

    def write(self, call: ToolCall, outcome: Outcome) -> ToolReturnPart:
        return ToolReturnPart(tool_name=call.alias, content=outcome.content, tool_call_id=call.id)
