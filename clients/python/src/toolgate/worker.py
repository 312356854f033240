"""Agents that work on tasks (RFC-0014 §11.5): a function becomes a worker, and sees only the tools of its task.

@Worker(capabilities=["billing"])
def process_invoice(ctx):
    charge = ctx.tools.invoke("stripe", "charges.create", parameters={"amount": ctx.input["amount"]})
    return {"charge_id": charge["id"]}

process_invoice.run()
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast, overload

from . import _tasks
from ._listing import TaskScope
from ._progress import OnPending
from ._tasks import Search, TakenTask, TaskLostError
from .client import AsyncClient, Client
from .exceptions import (
    AuthenticationError,
    PermissionDeniedError,
    StoppedError,
    ToolgateError,
)
from .frameworks import Framework
from .frameworks.toolset import AsyncToolset, Toolset
from .models import Context
from .tools import AsyncTools, Tools
from .work import Task

log = logging.getLogger("toolgate.worker")

FATAL = (AuthenticationError, StoppedError)
"""These end a worker: no other task would end differently."""


@dataclass(frozen=True)
class TaskContext:
    """What a worker gets: its task, and the tools that were delegated for it."""

    task: Task
    tools: Tools
    _client: Client = field(repr=False)

    @property
    def input(self) -> dict[str, Any]:
        return self.task.input

    @property
    def intent_id(self) -> str:
        return self.task.intent_id

    def tools_for(self, framework: Framework, *, on_pending: OnPending | None = None) -> Toolset:
        """The tools of the task for a framework."""
        return self._client.toolset(framework, self.tools, scope_of(self.task), None, on_pending)


@dataclass(frozen=True)
class AsyncTaskContext:
    """The same for asynchronous workers."""

    task: Task
    tools: AsyncTools
    _client: AsyncClient = field(repr=False)

    @property
    def input(self) -> dict[str, Any]:
        return self.task.input

    @property
    def intent_id(self) -> str:
        return self.task.intent_id

    async def tools_for(self, framework: Framework, *, on_pending: OnPending | None = None) -> AsyncToolset:
        return await self._client.toolset(framework, self.tools, scope_of(self.task), None, on_pending)


Handler = Callable[[TaskContext], object]
AsyncHandler = Callable[[AsyncTaskContext], Awaitable[object]]


def scope_of(task: Task) -> TaskScope:
    return TaskScope(Context(intent_id=task.intent_id, plan_id=task.plan_id, task_id=task.id))


class Worker:
    """Makes a worker of a function, blocking or asynchronous.

    `capabilities` are those that tasks may require; `intent_id` restricts it to one intent. A task is held by a lease
    of `lease_seconds`, which is renewed while the function runs: if the process dies, the task fails and can be tried
    again. With `None` there is no lease. `poll_seconds` is how long it waits when there is nothing to do."""

    def __init__(
        self,
        *,
        capabilities: Iterable[str] = (),
        intent_id: str | None = None,
        lease_seconds: int | None = 60,
        poll_seconds: float = 2.0,
    ) -> None:
        self.search = Search(frozenset(capabilities), intent_id, lease_seconds)
        self.poll_seconds = poll_seconds

    @overload
    def __call__(self, handler: AsyncHandler) -> AsyncTaskWorker: ...

    @overload
    def __call__(self, handler: Handler) -> TaskWorker: ...

    def __call__(self, handler: Handler | AsyncHandler) -> TaskWorker | AsyncTaskWorker:
        if inspect.iscoroutinefunction(handler):
            return AsyncTaskWorker(cast(AsyncHandler, handler), self.search, self.poll_seconds)
        return TaskWorker(cast(Handler, handler), self.search, self.poll_seconds)


class TaskWorker:
    """A worker that blocks. Called with a context, it is the function that it was made of."""

    def __init__(self, handler: Handler, search: Search, poll_seconds: float) -> None:
        self.handler = handler
        self.search = search
        self.poll_seconds = poll_seconds
        self._stopping = threading.Event()

    def __call__(self, context: TaskContext) -> object:
        return self.handler(context)

    def stop(self) -> None:
        """Lets `run` return when the current task has ended."""
        self._stopping.set()

    def run(self, client: Client | None = None) -> None:
        """Works until it is stopped, by `stop`, SIGTERM or SIGINT."""
        if client is None:
            with Client() as own:
                return self.run(own)
        with stopped_by_signals(self.stop):
            while not self._stopping.is_set():
                with suppressed_failures():
                    if self.run_once(client) is not None:
                        continue
                self._stopping.wait(self.poll_seconds)
        return None

    def run_once(self, client: Client) -> Task | None:
        """Works on one task, if there is one, and returns it as it ended."""
        taken = client.run(_tasks.take_next(client.core, self.search))
        if taken is None:
            return None
        task = taken.task
        with self._kept(client, taken):
            try:
                context = TaskContext(task, Tools(client, scope_of(task)), client)
                output = self.handler(context)
            except BaseException as error:
                report_failure(task, error)
                ended = client.run(_tasks.fail(client.core, task, error))
                if isinstance(error, FATAL) or not isinstance(error, Exception):
                    raise
                return ended
            return client.run(_tasks.complete(client.core, task, output))

    @contextmanager
    def _kept(self, client: Client, taken: TakenTask) -> Iterator[None]:
        """Renews the lease in a thread of its own."""
        lease, seconds = taken.lease, self.search.lease_seconds
        if lease is None or seconds is None:
            yield
            return
        ended = threading.Event()

        def keep() -> None:
            while not ended.wait(seconds / 3):
                try:
                    client.run(_tasks.renew(client.core, lease, seconds))
                except ToolgateError as error:
                    log.warning("the lease of task %s was not renewed: %s", taken.task.id, error)

        keeper = threading.Thread(target=keep, name=f"lease of {taken.task.id}", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join()


class AsyncTaskWorker:
    """The same for asynchronous functions."""

    def __init__(self, handler: AsyncHandler, search: Search, poll_seconds: float) -> None:
        self.handler = handler
        self.search = search
        self.poll_seconds = poll_seconds
        self._stopping = asyncio.Event()

    def __call__(self, context: AsyncTaskContext) -> Awaitable[object]:
        return self.handler(context)

    def stop(self) -> None:
        self._stopping.set()

    async def run(self, client: AsyncClient | None = None) -> None:
        """Works until `stop` is called. A cancelled worker fails its task."""
        if client is None:
            async with AsyncClient() as own:
                return await self.run(own)
        while not self._stopping.is_set():
            with suppressed_failures():
                if await self.run_once(client) is not None:
                    continue
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self.poll_seconds)
        return None

    async def run_once(self, client: AsyncClient) -> Task | None:
        taken = await client.run(_tasks.take_next(client.core, self.search))
        if taken is None:
            return None
        task = taken.task
        keeper = asyncio.create_task(self._keep(client, taken))
        try:
            context = AsyncTaskContext(task, AsyncTools(client, scope_of(task)), client)
            output = await self.handler(context)
        except BaseException as error:
            report_failure(task, error)
            ended = await client.run(_tasks.fail(client.core, task, error))
            if isinstance(error, FATAL) or not isinstance(error, Exception):
                raise
            return ended
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
        return await client.run(_tasks.complete(client.core, task, output))

    async def _keep(self, client: AsyncClient, taken: TakenTask) -> None:
        seconds = self.search.lease_seconds
        while taken.lease is not None and seconds is not None:
            await asyncio.sleep(seconds / 3)
            try:
                await client.run(_tasks.renew(client.core, taken.lease, seconds))
            except ToolgateError as error:
                log.warning("the lease of task %s was not renewed: %s", taken.task.id, error)


def report_failure(task: Task, error: BaseException) -> None:
    log.warning("task %s failed: %s", task.id, _tasks.text_of(error))


@contextmanager
def suppressed_failures() -> Iterator[None]:
    """What may be different in a while: the gate is away, the task was taken away."""
    try:
        yield
    except (*FATAL, PermissionDeniedError):
        raise
    except TaskLostError as error:
        log.warning("%s", error)
    except ToolgateError as error:
        log.warning("could not work: %s", error)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Signals stop a worker in the main thread; elsewhere Python has none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


__all__ = ["AsyncTaskContext", "AsyncTaskWorker", "TaskContext", "TaskLostError", "TaskWorker", "Worker"]
