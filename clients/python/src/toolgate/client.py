"""The clients. All they do is written once, as flows; each runs them in its own way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

import httpx

from . import _listing
from ._core import Core, address_of, headers_of
from ._flow import AsyncDriver, Driver, Flow
from ._listing import TaskScope
from ._progress import OnPending
from ._retry import Retry
from .frameworks import Framework, adapter_of
from .frameworks.toolset import AsyncToolset, Toolset
from .tools import AsyncTools, Tools

T = TypeVar("T")

TIMEOUT = 30.0
"""For everything but calls, in seconds."""
CALL_TIMEOUT = 600.0
"""Longer than a call usually waits for an approver (300 seconds) and is executed."""


class Client:
    """A client of one gate with one key. Threads may share it.

    `server_url` and `api_key` default to the variables `TOOLGATE_URL` and `TOOLGATE_TOKEN`. `agent_id` is only needed
    by a caller that acts for another agent. `http` replaces the connections, for example with other TLS settings."""

    def __init__(
        self,
        server_url: str | None = None,
        api_key: str | None = None,
        *,
        agent_id: str | None = None,
        timeout: float = TIMEOUT,
        call_timeout: float = CALL_TIMEOUT,
        retry: Retry | None = None,
        http: httpx.Client | None = None,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        address, headers = address_of(server_url), headers_of(api_key, agent_id)
        self.core = Core(address, agent_id, retry or Retry(), clock, call_timeout)
        self.http = http or httpx.Client(timeout=timeout)
        self.http.base_url = httpx.URL(address)
        self.http.headers.update(headers)
        self._driver = Driver(self.http, sleep)
        self.tools = Tools(self)

    def __repr__(self) -> str:
        return f"Client({self.core.server_url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self.http.close()

    def run(self, flow: Flow[T]) -> T:
        return self._driver.run(flow)

    def agent(self) -> str:
        """The id of the agent that the key belongs to."""
        return self.run(self.core.agent())

    def tools_for(
        self, framework: Framework, *, service: str | None = None, on_pending: OnPending | None = None
    ) -> Toolset:
        """The tools of the agent as the definitions that a framework takes; `execute` runs the calls of its model."""
        return self.toolset(framework, self.tools, None, service, on_pending)

    def toolset(
        self,
        framework: Framework,
        tools: Tools,
        scope: TaskScope | None,
        service: str | None = None,
        on_pending: OnPending | None = None,
    ) -> Toolset:
        listed = self.run(_listing.granted(self.core, scope, service))
        return Toolset(adapter_of(framework), tools, listed, on_pending)


class AsyncClient:
    """The same for asyncio."""

    def __init__(
        self,
        server_url: str | None = None,
        api_key: str | None = None,
        *,
        agent_id: str | None = None,
        timeout: float = TIMEOUT,
        call_timeout: float = CALL_TIMEOUT,
        retry: Retry | None = None,
        http: httpx.AsyncClient | None = None,
        sleep: Callable[[float], object] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        address, headers = address_of(server_url), headers_of(api_key, agent_id)
        self.core = Core(address, agent_id, retry or Retry(), clock, call_timeout)
        self.http = http or httpx.AsyncClient(timeout=timeout)
        self.http.base_url = httpx.URL(address)
        self.http.headers.update(headers)
        self._driver = AsyncDriver(self.http, sleep)
        self.tools = AsyncTools(self)

    def __repr__(self) -> str:
        return f"AsyncClient({self.core.server_url!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.http.aclose()

    async def run(self, flow: Flow[T]) -> T:
        return await self._driver.run(flow)

    async def agent(self) -> str:
        return await self.run(self.core.agent())

    async def tools_for(
        self, framework: Framework, *, service: str | None = None, on_pending: OnPending | None = None
    ) -> AsyncToolset:
        return await self.toolset(framework, self.tools, None, service, on_pending)

    async def toolset(
        self,
        framework: Framework,
        tools: AsyncTools,
        scope: TaskScope | None,
        service: str | None = None,
        on_pending: OnPending | None = None,
    ) -> AsyncToolset:
        listed = await self.run(_listing.granted(self.core, scope, service))
        return AsyncToolset(adapter_of(framework), tools, listed, on_pending)
