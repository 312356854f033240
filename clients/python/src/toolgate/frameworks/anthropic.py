"""The Messages API of Anthropic: blocks of type `tool_use` and `tool_result`."""

from __future__ import annotations

from typing import Any

from ..models import GrantedTool
from .adapter import AsyncRun, Outcome, Run, ToolCall, arguments_of, description_of, member, schema_of


class Messages:
    def define(self, tool: GrantedTool, run: Run | None, run_async: AsyncRun | None) -> dict[str, Any]:
        return {"name": tool.alias, "description": description_of(tool), "input_schema": schema_of(tool)}

    def read(self, call: Any) -> ToolCall:
        return ToolCall(str(member(call, "id")), str(member(call, "name")), arguments_of(member(call, "input")))

    def write(self, call: ToolCall, outcome: Outcome) -> dict[str, Any]:
        """A block for a message with the role `user`."""
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id, "content": outcome.text}
        if outcome.is_error:
            block["is_error"] = True
        return block
