"""The tools in the shapes of models and frameworks, and their calls."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from toolgate import AsyncClient, Client
from toolgate.exceptions import AuthenticationError

READ = "stripe_charges__read"
CREATE = "stripe_charges__create"
TOO_MUCH = {"amount": 101, "currency": "usd"}


def agent(world):
    return world.agent(["charges.create", "charges.read"], constraints={"amount_max": 100})


@pytest.fixture
def tools_for(world, connect):
    return connect(agent(world)[1]).tools_for


def call_of(shape, name, arguments, text=None):
    """A call as the model of this shape asks for it."""
    written = json.dumps(arguments) if text is None else text
    return {
        "openai": {"id": "call-1", "type": "function", "function": {"name": name, "arguments": written}},
        "openai-responses": {"type": "function_call", "call_id": "call-1", "name": name, "arguments": written},
        "anthropic": {"type": "tool_use", "id": "call-1", "name": name, "input": arguments if text is None else text},
        "langchain": {"type": "tool_call", "id": "call-1", "name": name, "args": arguments},
        "pydantic-ai": SimpleNamespace(tool_call_id="call-1", tool_name=name, args=written),
    }[shape]


def content_of(shape, message):
    """What the model is told, and whether as an error."""
    if shape in ("openai", "openai-responses"):
        assert message.get("tool_call_id", message.get("call_id")) == "call-1"
        content = json.loads(message["content"] if shape == "openai" else message["output"])
        return content, "error" in content
    if shape == "anthropic":
        assert message["tool_use_id"] == "call-1"
        return json.loads(message["content"]), message.get("is_error", False)
    assert message.tool_call_id == "call-1"
    if shape == "langchain":
        return json.loads(message.content), message.status == "error"
    return message.content, "error" in message.content


shapes = pytest.mark.parametrize("shape", ["openai", "openai-responses", "anthropic", "langchain", "pydantic-ai"])


@shapes
def test_a_call_of_the_model_is_executed(tools_for, shape):
    tools = tools_for(shape)
    content, is_error = content_of(shape, tools.execute(call_of(shape, READ, {"charge_id": "ch_5"})))
    assert (content, is_error) == ({"id": "ch_5", "currency": "usd"}, False)
    assert tools.names == {READ: "stripe.charges.read", CREATE: "stripe.charges.create"}


@shapes
def test_a_refusal_is_a_result_that_the_model_can_act_on(tools_for, shape):
    content, is_error = content_of(shape, tools_for(shape).execute(call_of(shape, CREATE, TOO_MUCH)))
    assert is_error
    assert content["error"]["code"] == "GRANT_PARAMETER_DENIED"
    assert "amount" in content["error"]["path"] and "100" in content["error"]["message"]


@shapes
def test_what_is_no_tool_and_no_arguments_is_said_to_the_model(tools_for, shape):
    tools = tools_for(shape)
    content, is_error = content_of(shape, tools.execute(call_of(shape, "stripe_refunds__create", {})))
    assert is_error and content["error"]["code"] == "TOOL_NOT_FOUND"
    if shape != "langchain":
        content, is_error = content_of(shape, tools.execute(call_of(shape, READ, {}, text='{"charge_id')))
        assert is_error and content["error"]["code"] == "PARAMETERS_INVALID"


def test_the_definitions_are_those_of_the_apis(tools_for):
    chat = {tool["function"]["name"]: tool for tool in tools_for("openai")}
    assert set(chat) == {READ, CREATE}
    assert chat[CREATE]["type"] == "function"
    assert chat[CREATE]["function"]["description"] == "Charge a card"
    assert chat[CREATE]["function"]["parameters"]["properties"]["amount"]["minimum"] == 1
    responses = {tool["name"]: tool for tool in tools_for("openai-responses")}
    assert responses[READ]["parameters"] == chat[READ]["function"]["parameters"]
    messages = {tool["name"]: tool for tool in tools_for("anthropic")}
    assert messages[READ]["input_schema"] == chat[READ]["function"]["parameters"]
    assert json.loads(json.dumps(tools_for("openai"))) == tools_for("openai")
    assert not tools_for("openai", service="github")


def test_objects_of_the_own_clients_are_read_like_dictionaries(tools_for):
    function = SimpleNamespace(name=READ, arguments='{"charge_id": "ch_5"}')
    message = tools_for("openai").execute(SimpleNamespace(id="call-1", function=function))
    assert json.loads(message["content"])["id"] == "ch_5"
    block = SimpleNamespace(id="call-1", name=READ, input={"charge_id": "ch_5"})
    assert json.loads(tools_for("anthropic").execute(block)["content"])["id"] == "ch_5"


def test_approvers_see_the_id_that_the_model_gave_its_call(world, connect):
    told = []

    def deny(pending):
        told.append(pending)
        world.approver.decide(pending.approval_id, "deny", "no")

    tools = connect(world.agent()[1]).tools_for("openai", on_pending=deny)
    call = call_of("openai", "stripe_transfers__create", {"amount": 1, "currency": "usd"})
    content, is_error = content_of("openai", tools.execute(call))
    assert is_error and content["error"]["code"] == "APPROVAL_DENIED"
    assert told[0].details["call_id"] == "call-1"


def test_what_a_model_cannot_change_is_raised(world, connect):
    name, key = agent(world)
    tools = connect(key).tools_for("openai")
    for held in world.admin.ask("GET", f"/agents/{name}/keys")["keys"]:
        world.admin.ask("DELETE", f"/keys/{held['id']}")
    with pytest.raises(AuthenticationError):
        tools.execute(call_of("openai", READ, {"charge_id": "ch_5"}))


def test_langchain_calls_the_tools_itself(world):
    with Client(world.gate.url, agent(world)[1]) as client:
        tools = {tool.name: tool for tool in client.tools_for("langchain")}
        assert json.loads(tools[READ].invoke({"charge_id": "ch_5"}))["id"] == "ch_5"
        call = {"type": "tool_call", "id": "call-1", "name": CREATE, "args": TOO_MUCH}
        message = tools[CREATE].invoke(call)
        assert message.status == "error" and "GRANT_PARAMETER_DENIED" in message.content

    async def run():
        async with AsyncClient(world.gate.url, agent(world)[1]) as client:
            tools = {tool.name: tool for tool in await client.tools_for("langchain")}
            return await tools[READ].ainvoke({"charge_id": "ch_5"})

    assert json.loads(asyncio.run(run()))["id"] == "ch_5"


def test_pydantic_ai_calls_the_tools_itself(world):
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    steps = [(READ, {"charge_id": "ch_5"}), (CREATE, TOO_MUCH)]

    async def script(messages, info):
        assert {tool.name for tool in info.function_tools} == {READ, CREATE}
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if len(returned) == len(steps):
            return ModelResponse(parts=[TextPart(json.dumps([part.content for part in returned]))])
        return ModelResponse(parts=[ToolCallPart(*steps[len(returned)])])

    def check(output):
        read, refused = json.loads(output)
        assert read["id"] == "ch_5"
        assert refused["error"]["code"] == "GRANT_PARAMETER_DENIED"

    with Client(world.gate.url, agent(world)[1]) as client:
        check(asyncio.run(Agent(FunctionModel(script), tools=client.tools_for("pydantic-ai")).run("Go on.")).output)

    async def run():
        async with AsyncClient(world.gate.url, agent(world)[1]) as client:
            return (
                await Agent(FunctionModel(script), tools=await client.tools_for("pydantic-ai")).run("Go on.")
            ).output

    check(asyncio.run(run()))


def test_frameworks_are_imported_only_if_they_are_used(world):
    script = (
        "import sys\nfrom toolgate import Client\n"
        "Client().tools_for('openai'); Client().tools_for('anthropic')\n"
        "assert not {'langchain_core', 'pydantic_ai', 'pydantic'} & set(sys.modules)\n"
    )
    environment = {
        "TOOLGATE_URL": world.gate.url,
        "TOOLGATE_TOKEN": agent(world)[1],
        "PYTHONPATH": ":".join(filter(None, sys.path)),
    }
    subprocess.run([sys.executable, "-B", "-c", script], env=environment, check=True)


def test_an_unknown_framework_is_named(tools_for):
    with pytest.raises(ValueError, match="crewai"):
        tools_for("crewai")
