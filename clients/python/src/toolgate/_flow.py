"""One code base for blocking and asynchronous code: what the client does is written as generators, which yield effects
(send this, wait that long) and receive their results. A driver performs the effects, either way."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import httpx

from ._http import Request, Response
from .exceptions import TransportError

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    request: Request


@dataclass(frozen=True)
class OpenLines:
    """Sends a request and returns the response with its lines unread."""

    request: Request


@dataclass(frozen=True)
class NextLine:
    lines: OpenedLines


@dataclass(frozen=True)
class ReadAll:
    """Reads a response that turned out to have no lines."""

    lines: OpenedLines


@dataclass(frozen=True)
class CloseLines:
    lines: OpenedLines


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Notify:
    """Calls a function of the user, which may be asynchronous where the driver is."""

    callback: Callable[[Any], object]
    argument: object


Effect: TypeAlias = Send | OpenLines | NextLine | ReadAll | CloseLines | Sleep | Notify
Flow: TypeAlias = Generator[Effect, Any, T]


@dataclass
class OpenedLines:
    """A response whose lines are still to be read."""

    head: Response
    source: httpx.Response
    iterator: Iterator[str] | AsyncIterator[str] | None = None


def send(request: Request) -> Flow[Response]:
    response: Response = yield Send(request)
    return response


def open_lines(request: Request) -> Flow[OpenedLines]:
    lines: OpenedLines = yield OpenLines(request)
    return lines


def next_line(lines: OpenedLines) -> Flow[str | None]:
    """The next line; `None` at the end."""
    line: str | None = yield NextLine(lines)
    return line


def read_all(lines: OpenedLines) -> Flow[Response]:
    response: Response = yield ReadAll(lines)
    return response


class Driver:
    """Performs effects with blocking code."""

    def __init__(self, http: httpx.Client, sleep: Callable[[float], object]) -> None:
        self.http = http
        self.sleep = sleep

    def run(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    outcome = self._perform(effect)
                except BaseException as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(outcome)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _perform(self, effect: Effect) -> object:
        if isinstance(effect, Sleep):
            return self.sleep(effect.seconds)
        if isinstance(effect, Notify):
            outcome = effect.callback(effect.argument)
            if inspect.iscoroutine(outcome):
                outcome.close()
                raise TypeError("an asynchronous callback needs AsyncClient")
            return None
        if isinstance(effect, CloseLines):
            effect.lines.source.close()
            return None
        try:
            return self._exchange(effect)
        except httpx.TransportError as error:
            raise failure(error) from error

    def _exchange(self, effect: Send | OpenLines | NextLine | ReadAll) -> object:
        if isinstance(effect, Send):
            return whole(self.http.send(build(self.http, effect.request)))
        if isinstance(effect, OpenLines):
            source = self.http.send(build(self.http, effect.request), stream=True)
            return OpenedLines(head(source), source)
        lines = effect.lines
        if isinstance(effect, ReadAll):
            lines.source.read()
            return whole(lines.source)
        if not isinstance(lines.iterator, Iterator):
            lines.iterator = lines.source.iter_lines()
        return next(lines.iterator, None)


class AsyncDriver:
    """Performs effects with asynchronous code."""

    def __init__(self, http: httpx.AsyncClient, sleep: Callable[[float], object]) -> None:
        self.http = http
        self.sleep = sleep

    async def run(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    outcome = await self._perform(effect)
                except BaseException as error:
                    effect = flow.throw(error)
                else:
                    effect = flow.send(outcome)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _perform(self, effect: Effect) -> object:
        if isinstance(effect, Sleep):
            return await settled(self.sleep(effect.seconds))
        if isinstance(effect, Notify):
            return await settled(effect.callback(effect.argument))
        if isinstance(effect, CloseLines):
            await effect.lines.source.aclose()
            return None
        try:
            return await self._exchange(effect)
        except httpx.TransportError as error:
            raise failure(error) from error

    async def _exchange(self, effect: Send | OpenLines | NextLine | ReadAll) -> object:
        if isinstance(effect, Send):
            return whole(await self.http.send(build(self.http, effect.request)))
        if isinstance(effect, OpenLines):
            source = await self.http.send(build(self.http, effect.request), stream=True)
            return OpenedLines(head(source), source)
        lines = effect.lines
        if isinstance(effect, ReadAll):
            await lines.source.aread()
            return whole(lines.source)
        if not isinstance(lines.iterator, AsyncIterator):
            lines.iterator = lines.source.aiter_lines()
        return await anext(lines.iterator, None)


async def settled(outcome: object) -> object:
    """The outcome of a function that may have been asynchronous."""
    return await outcome if isinstance(outcome, Awaitable) else outcome


def build(http: httpx.Client | httpx.AsyncClient, request: Request) -> httpx.Request:
    headers = dict(request.headers)
    content = request.content()
    if content is not None:
        headers["Content-Type"] = "application/json"
    timeout = httpx.Timeout(http.timeout)
    if request.read_timeout is not None:
        timeout.read = request.read_timeout
    return http.build_request(
        request.method, request.path, params=request.query or None, content=content, headers=headers, timeout=timeout
    )


def head(source: httpx.Response) -> Response:
    headers = {name.lower(): value for name, value in source.headers.items()}
    return Response(source.status_code, headers, b"")


def whole(source: httpx.Response) -> Response:
    read = head(source)
    return Response(read.status, read.headers, source.content)


NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


def failure(error: httpx.TransportError) -> TransportError:
    """`sent` is false only if the gate certainly received nothing."""
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ReadTimeout):
        text = "no response in time"
    return TransportError(f"the gate could not be reached: {text}", sent=not isinstance(error, NEVER_SENT))
