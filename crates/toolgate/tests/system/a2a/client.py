"""The official client of A2A, for the tests.

    client.py URL BINDING VERSION STEPS

STEPS is JSON: a list of steps, each with `do` and what that needs. What came of each is one line of JSON: the events of
`send`, the object of others, or `error` with the class and the text of what was raised. `$task` in a step is the task of
the last answer. The key is in TOOLGATE_KEY.
"""

import asyncio
import json
import os
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
)
from google.protobuf.json_format import MessageToDict


def request(step, state):
    named = {name: state.get(value[1:], "") if str(value).startswith("$") else value for name, value in step.items()}
    message = Message(message_id=named.get("message_id") or uuid.uuid4().hex, role=Role.ROLE_USER)
    message.parts.append(Part(text=named["text"]))
    message.task_id, message.context_id = named.get("task", ""), named.get("context", "")
    if "reference" in named:
        message.reference_task_ids.append(named["reference"])
    asked = SendMessageRequest(message=message)
    if step.get("push"):
        asked.configuration.task_push_notification_config.url = step["push"]
    return asked


async def carry_out(client, step, state):
    task = step.get("task", "")
    task = state.get(task[1:], "") if task.startswith("$") else task
    if step["do"] in ("send", "subscribe"):
        stream = client.send_message(request(step, state)) if step["do"] == "send" else client.subscribe(
            SubscribeToTaskRequest(id=task)
        )
        events = []
        try:
            async for event in stream:
                events.append(MessageToDict(event))
                find(events[-1], state)
                if step.get("events") == len(events):
                    break
        except Exception as error:
            return {"events": events, "error": type(error).__name__, "text": str(error)}
        return {"events": events}
    if step["do"] == "get":
        return MessageToDict(await client.get_task(GetTaskRequest(id=task)))
    if step["do"] == "cancel":
        return MessageToDict(await client.cancel_task(CancelTaskRequest(id=task)))
    return MessageToDict(await client.list_tasks(ListTasksRequest()))


def find(event, state):
    for holder in (event.get("task"), event.get("statusUpdate"), event.get("artifactUpdate")):
        if holder:
            state["task"] = holder.get("id") or holder.get("taskId")
            state["context"] = holder.get("contextId")


async def main():
    url, binding, version, steps = sys.argv[1:5]
    key = os.environ.get("TOOLGATE_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        kept = [one for one in card.supported_interfaces if one.protocol_binding == binding]
        kept = [one for one in kept if one.protocol_version.startswith(version)]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(kept)
        state = dict(pair.split("=", 1) for pair in sys.argv[5:])
        for step in json.loads(steps):
            config = ClientConfig(
                httpx_client=http,
                streaming=step.get("streaming", step["do"] == "subscribe"),
                supported_protocol_bindings=[binding],
            )
            client = await create_client(card, config)
            try:
                came = await carry_out(client, step, state)
            except Exception as error:
                came = {"error": type(error).__name__, "text": str(error)}
            print(json.dumps(came | {"state": state}), flush=True)


asyncio.run(main())
