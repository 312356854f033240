"""An agent on the official SDK of A2A, for the tests.

    agent.py LOG

Its first line of output is its address. Every request that it gets is one line of LOG. What it does depends on the first
word of the message: `hello` works and returns an artifact, `pieces` returns one in pieces that spell the words behind it,
`leak` returns a text piece by piece with `EMAIL` in the second, `forever` works until it is cancelled, and `message` answers
with a message and no task. Every text that it got is in its answer.
"""

import asyncio
import json
import socket
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette


class Executor(AgentExecutor):
    async def execute(self, context, queue):
        text = context.get_user_input()
        word, _, rest = text.partition(" ")
        if word == "message":
            answer = Message(message_id="answer", role=Role.ROLE_AGENT, context_id=context.context_id)
            answer.parts.append(Part(text=f"you said {rest}"))
            await queue.enqueue_event(answer)
            return
        if context.current_task is None:
            task = Task(id=context.task_id, context_id=context.context_id)
            task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_SUBMITTED))
            task.history.append(context.message)
            await queue.enqueue_event(task)
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        await updater.start_work()
        if word == "forever":
            while True:
                await asyncio.sleep(0.2)
        pieces = [f"you said {rest}"]
        if word == "pieces":
            pieces = rest.split("|")
        for number, piece in enumerate(pieces):
            await updater.add_artifact(
                [Part(text=piece)],
                artifact_id="answer",
                append=number > 0,
                last_chunk=number == len(pieces) - 1,
            )
            await asyncio.sleep(0.05)
        await updater.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def card(base, description):
    interface = lambda binding, version, path: AgentInterface(
        url=base + path, protocol_binding=binding, protocol_version=version
    )
    return AgentCard(
        name="Travel",
        description=description,
        version="1.0",
        supported_interfaces=[
            interface("JSONRPC", "1.0", "/rpc"),
            interface("HTTP+JSON", "1.0", "/rest"),
            interface("JSONRPC", "0.3", "/rpc"),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="book", name="Book", description="Books a journey.", tags=["travel"])],
    )


class Logged:
    """Writes what arrives, before anything is done with it."""

    def __init__(self, app, log):
        self.app, self.log = app, log

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body = b""
        more = True
        while more:
            part = await receive()
            body += part.get("body", b"")
            more = part.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        with open(self.log, "a", encoding="utf-8") as log:
            entry = {"method": scope["method"], "path": scope["path"], "headers": headers, "body": body.decode()}
            log.write(json.dumps(entry) + "\n")
        given = False

        async def again():
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again, send)


def main():
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    description = sys.argv[2] if len(sys.argv) > 2 else "Books journeys."
    own = card(base, description)
    handler = DefaultRequestHandler(Executor(), InMemoryTaskStore(), own)
    routes = create_agent_card_routes(own)
    routes += create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)
    routes += create_rest_routes(handler, path_prefix="/rest", enable_v0_3_compat=True)
    app = Logged(Starlette(routes=routes), sys.argv[1])
    print(base, flush=True)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    asyncio.run(server.serve(sockets=[listening]))


main()
