"""Requests to the gate and its responses, independent of whether they are sent by blocking or by asynchronous code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

JSON = "application/json"
LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """In addition to those that every request has."""
    read_timeout: float | None = None
    """How long to wait for the next bytes, in seconds; the usual time if absent."""
    repeatable: bool = False
    """Whether a second request does not change anything: it may be repeated if the connection is lost."""

    def content(self) -> bytes | None:
        """The body as bytes. A number that JSON does not have is a `ValueError`."""
        if self.body is None:
            return None
        return json.dumps(self.body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """The body; `None` if it is not JSON, as from a proxy in front of the gate."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None

    @property
    def is_lines(self) -> bool:
        return self.headers.get("content-type", "").startswith(LINES)

    @property
    def retry_after(self) -> float | None:
        """The seconds of `Retry-After`, which the gate always writes as a number."""
        text = self.headers.get("retry-after", "").strip()
        return float(text) if text.isascii() and text.isdigit() else None


def path(*parts: str) -> str:
    """`/api/v1/...`: each part becomes one segment, whatever it contains."""
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


def query(**values: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}
