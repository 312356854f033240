"""What a framework differs in: how a tool is defined, how its model asks for a call and how it is told the outcome."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..exceptions import AuthenticationError, StoppedError, ToolgateError, TransportError
from ..models import GrantedTool

NO_SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}
FOR_PROGRAMS = (AuthenticationError, StoppedError, TransportError)
"""A model cannot do anything about these: they end its run."""


@dataclass(frozen=True)
class ToolCall:
    """A call that a model asks for."""

    id: str
    alias: str
    arguments: dict[str, Any] | None
    """`None` if the model wrote something that is no JSON object."""


@dataclass(frozen=True)
class Outcome:
    """What the model is told."""

    content: Any
    is_error: bool = False

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else json.dumps(self.content, ensure_ascii=False)


Run = Callable[[str, dict[str, Any]], Outcome]
AsyncRun = Callable[[str, dict[str, Any]], Awaitable[Outcome]]


class Adapter(Protocol):
    def define(self, tool: GrantedTool, run: Run | None, run_async: AsyncRun | None) -> Any:
        """The definition. A framework that calls tools itself gets one of the functions, by alias and arguments."""

    def read(self, call: Any) -> ToolCall:
        """What the model asks for."""

    def write(self, call: ToolCall, outcome: Outcome) -> Any:
        """The message with the outcome."""


def schema_of(tool: GrantedTool) -> dict[str, Any]:
    return dict(tool.parameters if tool.parameters is not None else NO_SCHEMA)


def description_of(tool: GrantedTool) -> str:
    return tool.description or f"{tool.tool} of {tool.service}"


def member(source: Any, name: str) -> Any:
    """A member of a message: of a dictionary, or of an object of the framework's own client."""
    return source.get(name) if isinstance(source, Mapping) else getattr(source, name, None)


def arguments_of(written: Any) -> dict[str, Any] | None:
    """Arguments as a model writes them: JSON text or an object."""
    if isinstance(written, str):
        try:
            written = json.loads(written or "{}")
        except ValueError:
            return None
    return dict(written) if isinstance(written, Mapping) else None


def refused(error: ToolgateError) -> Outcome:
    """A refusal in words that help the model to make another call."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    hints = ("path", "rule", "available_scopes", "candidates", "retry_after_seconds", "http_status", "approval_id")
    told.update({name: error.details[name] for name in hints if name in error.details})
    outcome: dict[str, Any] = {"error": told}
    if error.result is not None:
        outcome["result"] = error.result
    return Outcome(outcome, is_error=True)


def unknown(alias: str) -> Outcome:
    message = f"there is no tool {alias!r}; call one of the tools that are defined"
    return Outcome({"error": {"code": "TOOL_NOT_FOUND", "message": message}}, is_error=True)


def unreadable() -> Outcome:
    message = "the arguments are not a JSON object; send the call again"
    return Outcome({"error": {"code": "PARAMETERS_INVALID", "message": message}}, is_error=True)
