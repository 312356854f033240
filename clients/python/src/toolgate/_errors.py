"""Turns refusals of the gate, and calls that failed, into exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._http import Response
from .exceptions import ResponseError, ToolgateError, class_of

SHOWN = 200


def error_of(response: Response) -> ToolgateError:
    """The exception for a response that is not a success."""
    return error_from(response.status, response.json(), response)


def error_from(status: int, body: Any, response: Response) -> ToolgateError:
    request_id = response.headers.get("x-request-id")
    error = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping) or not isinstance(error.get("code"), str):
        text = response.content[:SHOWN].decode(errors="replace").strip()
        message = f"a response with status {status} that is not from a gate: {text or 'empty'}; check server_url"
        return ResponseError(message, status_code=status, request_id=request_id)
    details = {name: value for name, value in error.items() if name not in ("code", "message")}
    if "retry_after_seconds" not in details and response.retry_after is not None:
        details["retry_after_seconds"] = response.retry_after
    code = error["code"]
    return class_of(code, status)(
        str(error.get("message", "refused")),
        code=code,
        details=details,
        invocation_id=body.get("invocation_id"),
        status_code=status,
        request_id=request_id,
        result=body.get("result"),
    )
