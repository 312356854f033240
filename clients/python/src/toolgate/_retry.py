"""When a request is repeated: only where it cannot be executed twice, so many times, and for so long."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ._http import Response
from .exceptions import TransportError


@dataclass(frozen=True)
class Retry:
    """Requests are repeated if the gate refused them and said when to come again (429 and 503 with `Retry-After`), and
    if the connection failed. A request that the gate may have received is repeated only if it changes nothing or has an
    idempotency key."""

    attempts: int = 4
    """Including the first one; 1 means never."""
    total_seconds: float = 60.0
    """No attempt begins later than that after the first failure. A longer `Retry-After` is not waited for."""
    first_wait_seconds: float = 0.2
    """After a failed connection; doubled each time, and up to a half shorter at random."""
    random: Callable[[], float] = field(default=random.random, repr=False)


class Attempts:
    """The attempts of one request."""

    def __init__(self, policy: Retry, clock: Callable[[], float], deadline: float | None = None) -> None:
        self.policy = policy
        self.clock = clock
        self.made = 0
        self.deadline = math.inf if deadline is None else deadline
        self.end: float | None = None

    def after_failure(self, error: TransportError, repeatable: bool) -> float | None:
        """How long to wait before the next attempt; `None` if there is none."""
        if error.sent and not repeatable:
            return None
        doubled = self.policy.first_wait_seconds * 2.0**self.made
        return self._next(doubled * (1 - self.policy.random() / 2))

    def after_refusal(self, response: Response, repeatable: bool) -> float | None:
        wait = response.retry_after
        if wait is None or not (repeatable or response.status == 429):
            return None
        if response.status in (429, 503) or self._is_own_call(response):
            return self._next(wait)
        return None

    def _is_own_call(self, response: Response) -> bool:
        """Whether an earlier attempt, whose connection was lost, is still executed."""
        if response.status != 409 or self.made == 0:
            return False
        body = response.json()
        error = body.get("error") if isinstance(body, dict) else None
        return isinstance(error, dict) and error.get("code") == "IDEMPOTENCY_IN_PROGRESS"

    def _next(self, wait: float) -> float | None:
        self.made += 1
        now = self.clock()
        if self.end is None:
            self.end = min(self.deadline, now + self.policy.total_seconds)
        if self.made >= self.policy.attempts or now + wait > self.end:
            return None
        return wait
