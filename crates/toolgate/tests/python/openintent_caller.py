"""One client of OpenIntent, synchronous or asynchronous, for scripts that serve both; and what must be refused."""

import asyncio
import inspect
import os

from openintent import AsyncOpenIntentClient
from openintent.exceptions import OpenIntentError

URL = os.environ["TOOLGATE_URL"]


class Caller:
    """One client; calls of the asynchronous one are waited for here, so that one script serves both."""

    def __init__(self, kind, key, agent_id):
        self.client = kind(base_url=URL, api_key=key, agent_id=agent_id)
        self.loop = asyncio.new_event_loop() if kind is AsyncOpenIntentClient else None

    def __getattr__(self, name):
        method = getattr(self.client, name)

        def call(*arguments, **keywords):
            answer = method(*arguments, **keywords)
            return self.loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer

        return call


def raises(kind, call, *arguments, **keywords):
    """The error that the call must raise, of exactly this class."""
    try:
        answer = call(*arguments, **keywords)
    except OpenIntentError as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error} {error.response}"
        return error
    raise AssertionError(f"not refused: {answer}")


def code_of(error):
    return error.response["error"]["code"]
