"""The two APIs of OpenAI, which many other providers offer too. Calls may be dictionaries or objects of its client."""

from __future__ import annotations

from typing import Any

from ..models import GrantedTool
from .adapter import AsyncRun, Outcome, Run, ToolCall, arguments_of, description_of, member, schema_of


class ChatCompletions:
    """Chat Completions: `tools` of a request, `tool_calls` of a message, and messages with the role `tool`."""

    def define(self, tool: GrantedTool, run: Run | None, run_async: AsyncRun | None) -> dict[str, Any]:
        function = {"name": tool.alias, "description": description_of(tool), "parameters": schema_of(tool)}
        return {"type": "function", "function": function}

    def read(self, call: Any) -> ToolCall:
        function = member(call, "function")
        arguments = arguments_of(member(function, "arguments"))
        return ToolCall(str(member(call, "id")), str(member(function, "name")), arguments)

    def write(self, call: ToolCall, outcome: Outcome) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": call.id, "content": outcome.text}


class Responses:
    """The Responses API: items of type `function_call` and `function_call_output`."""

    def define(self, tool: GrantedTool, run: Run | None, run_async: AsyncRun | None) -> dict[str, Any]:
        return {
            "type": "function",
            "name": tool.alias,
            "description": description_of(tool),
            "parameters": schema_of(tool),
            # A strict schema has no optional members, which tools do have.
            "strict": False,
        }

    def read(self, call: Any) -> ToolCall:
        return ToolCall(
            str(member(call, "call_id")), str(member(call, "name")), arguments_of(member(call, "arguments"))
        )

    def write(self, call: ToolCall, outcome: Outcome) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call.id, "output": outcome.text}
