"""The agent loop of the OpenAI Agents SDK, with a scripted model: list, call, refusal, approval, revocation while connected."""

import asyncio
import json
import sys

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from gate import KEY, MCP, approve_and_run, resume, suspend
from mcp import MCPError
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class Script(Model):
    """Calls tools as scripted, one in each turn, and records what it was offered and what came back."""

    def __init__(self, *steps):
        self.steps, self.offered, self.outputs = list(steps), [], []

    async def get_response(self, system_instructions, input, model_settings, tools, *further, **options):
        self.offered.append({tool.name for tool in tools})
        outputs = [item["output"] for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        self.outputs = [output if isinstance(output, str) else json.dumps(output) for output in outputs]
        turn = len(self.outputs)
        if turn < len(self.steps):
            name, arguments, before = self.steps[turn]
            if before:
                await asyncio.to_thread(before)
            output = ResponseFunctionToolCall(
                type="function_call", call_id=f"call-{turn}", name=name, arguments=json.dumps(arguments)
            )
        else:
            text = ResponseOutputText(type="output_text", text="finished", annotations=[])
            output = ResponseOutputMessage(
                id="message", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *further, **options):
        raise NotImplementedError("the script is not streamed")


async def loop(server, *steps):
    model = Script(*steps)
    result = await Runner.run(Agent(name="teller", model=model, mcp_servers=[server]), "Go on.")
    assert result.final_output == "finished", result
    return model


async def main():
    set_tracing_disabled(True)
    params = {"url": MCP, "headers": {"Authorization": f"Bearer {KEY}"}, "timeout": 60}
    async with MCPServerStreamableHttp(params, client_session_timeout_seconds=60) as server:
        transfer = {"amount": 5, "to": "ann"}
        model = await loop(
            server,
            ("bank_balance", {"amount": 1, "to": "ann"}, None),
            ("bank_balance", {"amount": [], "to": "ann"}, None),
            ("bank_transfer", transfer, None),
            ("bank_transfer", transfer, lambda: approve_and_run("transfer")),
        )
        assert {"bank_balance", "bank_transfer"} <= model.offered[0], model.offered
        called, refused, waiting, approved = model.outputs
        assert '\\"done\\": true' in called or '\\"done\\":true' in called, called
        assert "amount" in refused and "done" not in refused, refused
        assert "Make the same call again" in waiting, waiting
        assert approved == called, approved

        suspend()
        model = await loop(server)
        assert model.offered == [set()], model.offered
        try:
            await server.call_tool("bank_balance", {"amount": 1, "to": "ann"})
        except MCPError as error:
            assert error.error.code == -32602, error
        else:
            raise AssertionError("a tool without a grant was called")
        resume()
    print("openai-agents: done")


if __name__ == "__main__":
    asyncio.run(main())
    sys.exit(0)
