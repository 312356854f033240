"""LangChain and LangGraph: structured tools, which their agents call themselves, and tool messages."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool, ToolException

from ..models import GrantedTool
from .adapter import AsyncRun, Outcome, Run, ToolCall, arguments_of, description_of, member, schema_of


class LangChain:
    def define(self, tool: GrantedTool, run: Run | None, run_async: AsyncRun | None) -> StructuredTool:
        def call(**arguments: Any) -> str:
            if run is None:
                raise TypeError("the tools of an AsyncClient are called with `ainvoke`")
            return result_of(run(tool.alias, arguments))

        async def call_async(**arguments: Any) -> str:
            assert run_async is not None
            return result_of(await run_async(tool.alias, arguments))

        return StructuredTool(
            name=tool.alias,
            description=description_of(tool),
            args_schema=schema_of(tool),
            func=call,
            coroutine=call_async if run_async is not None else None,
            handle_tool_error=True,
        )

    def read(self, call: Any) -> ToolCall:
        return ToolCall(str(member(call, "id")), str(member(call, "name")), arguments_of(member(call, "args")))

    def write(self, call: ToolCall, outcome: Outcome) -> ToolMessage:
        status = "error" if outcome.is_error else "success"
        return ToolMessage(content=outcome.text, tool_call_id=call.id, name=call.alias, status=status)


def result_of(outcome: Outcome) -> str:
    """The text for the model; LangChain marks that of an exception as an error."""
    if outcome.is_error:
        raise ToolException(outcome.text)
    return outcome.text
