"""One gate with one service for all tests; each test has agents of its own."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from document import ASYNC_HOOKS, HOOKS
from gate import SCOPES, TOKEN, Admin, Gate, Service, stripe
from toolgate import AsyncClient, AsyncToolset, Client, Retry

NAMES = (f"agent-{number}" for number in itertools.count(1))


@dataclass
class World:
    gate: Gate
    service: Service
    credential: str
    approver: Admin

    @property
    def admin(self) -> Admin:
        return self.gate.admin

    def agent(self, scopes: list[str] | None = None, **grant: object) -> tuple[str, str]:
        """A new agent and its key, with a grant on these scopes."""
        name = next(NAMES)
        key = self.admin.agent(name)
        if scopes != []:
            self.admin.grant(self.credential, name, scopes or SCOPES, **grant)
        return name, key


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, service: Service) -> Iterator[World]:
    gate = Gate(tmp_path_factory.mktemp("gate"))
    credential = gate.admin.service(stripe(), service.url, SCOPES)
    approver = Admin(gate.url, gate.admin.agent("ann", "user", ["approvals.decide"]))
    yield World(gate, service, credential, approver)
    approver.http.close()
    gate.stop()


class Blocking:
    """An asynchronous client, used as if it were not, so that one test serves both."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.inner = inner
        self.loop = loop

    def __getattr__(self, name: str) -> Any:
        return self.wrap(getattr(self.inner, name))

    def wrap(self, value: Any) -> Any:
        if inspect.ismethod(value):
            return lambda *arguments, **options: self.wrap(value(*arguments, **options))
        if inspect.iscoroutine(value):
            return self.wrap(self.loop.run_until_complete(value))
        if isinstance(value, AsyncToolset):
            # It stays the list that it is.
            value.execute = self.wrap(value.execute)  # type: ignore[method-assign]
        is_ours = type(value).__name__.startswith("Async") and type(value).__module__.startswith("toolgate")
        return Blocking(value, self.loop) if is_ours and not isinstance(value, list) else value


@pytest.fixture(params=["blocking", "asynchronous"])
def connect(request: pytest.FixtureRequest, world: World) -> Iterator[Any]:
    """Makes clients of either kind, which are closed at the end. All they send is as the OpenAPI document says."""
    loop = asyncio.new_event_loop()
    made: list[Any] = []

    def client(key: str, **options: Any) -> Any:
        options = {"server_url": world.gate.url, "retry": Retry(attempts=1), **options}
        if request.param == "blocking":
            made.append(Client(api_key=key, **{"http": httpx.Client(trust_env=False, event_hooks=HOOKS), **options}))
        else:
            inner = AsyncClient(
                api_key=key, **{"http": httpx.AsyncClient(trust_env=False, event_hooks=ASYNC_HOOKS), **options}
            )
            made.append(Blocking(inner, loop))
        return made[-1]

    client.kind = request.param  # type: ignore[attr-defined]
    yield client
    for each in made:
        each.close()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


__all__ = ["TOKEN", "World"]
