"""What both clients share: how requests are sent, repeated and read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _flow as flow
from ._decode import decode
from ._errors import error_of
from ._flow import Flow
from ._http import Request, Response, path, query
from ._retry import Attempts, Retry
from .exceptions import ResponseError, TransportError

T = TypeVar("T")

PAGE = 1000
USER_AGENT = "toolgate-python"


@dataclass
class Core:
    server_url: str
    agent_id: str | None
    retry: Retry
    clock: Callable[[], float]
    call_timeout: float
    own_id: str | None = None
    """The id of the agent, once it is known."""

    def exchange(
        self,
        request: Request,
        *,
        by: Callable[[Request], Flow[Response]] = flow.send,
        deadline: float | None = None,
        is_final: Callable[[Response], bool] = lambda response: False,
    ) -> Flow[Response]:
        """Sends a request, again where that is safe, and returns a success; everything else is raised."""
        attempts = Attempts(self.retry, self.clock, deadline)
        while True:
            try:
                response = yield from by(request)
            except TransportError as error:
                wait = attempts.after_failure(error, request.repeatable)
                if wait is None:
                    raise
            else:
                if response.status < 300:
                    return response
                wait = None if is_final(response) else attempts.after_refusal(response, request.repeatable)
                if wait is None:
                    raise error_of(response)
            yield flow.Sleep(wait)

    def ask(self, kind: type[T], request: Request) -> Flow[T]:
        response = yield from self.exchange(request)
        return decode(kind, response.json())

    def get(self, kind: type[T], *parts: str, **values: str | int | None) -> Flow[T]:
        return (yield from self.ask(kind, Request("GET", path(*parts), query(**values), repeatable=True)))

    def pages(self, kind: type[T], member: str, *parts: str, **values: str | int | None) -> Flow[list[T]]:
        """All pages of a list."""
        found: list[T] = []
        cursor: str | None = None
        while True:
            page = yield from self.get(dict, *parts, **values, limit=PAGE, cursor=cursor)
            items = page.get(member)
            if not isinstance(items, list):
                raise ResponseError(f"a response without the list `{member}`")
            found.extend(decode(kind, item) for item in items)
            cursor = page.get("next_cursor")
            if cursor is None:
                return found

    def agent(self) -> Flow[str]:
        """The id of the agent that this client acts for."""
        if self.agent_id is not None:
            return self.agent_id
        if self.own_id is None:
            caller = yield from self.get(dict, "whoami")
            self.own_id = decode(str, caller.get("id"))
        return self.own_id


def address_of(server_url: str | None) -> str:
    """The address without a slash at its end."""
    url = (server_url or os.environ.get("TOOLGATE_URL", "")).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ValueError("server_url must be the address of a gate, as http://127.0.0.1:7300; or set TOOLGATE_URL")
    return url


def headers_of(api_key: str | None, agent_id: str | None) -> Mapping[str, str]:
    key = api_key or os.environ.get("TOOLGATE_TOKEN", "")
    if not key:
        raise ValueError("api_key must be a key of the agent; or set TOOLGATE_TOKEN")
    headers: dict[str, Any] = {"Authorization": f"Bearer {key}", "User-Agent": USER_AGENT, "Accept": "application/json"}
    if agent_id is not None:
        headers["X-Agent-ID"] = agent_id
    return headers
