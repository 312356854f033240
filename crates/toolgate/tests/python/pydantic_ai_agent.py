"""The agent loop of pydantic-ai, with its own models for tests: list, call, refusal, approval, revocation while connected."""

import asyncio
import sys

from gate import KEY, MCP, approve_and_run, resume, suspend
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel


class Script:
    """Calls tools as scripted, one in each turn, and records what it was offered and what came back."""

    def __init__(self, *steps):
        self.steps, self.offered, self.returned = list(steps), [], []

    async def __call__(self, messages, info):
        self.offered.append({tool.name for tool in info.function_tools})
        parts = [part for message in messages for part in message.parts]
        self.returned = [part for part in parts if isinstance(part, ToolReturnPart)]
        turn = len(self.returned)
        if turn == len(self.steps):
            return ModelResponse(parts=[TextPart("finished")])
        name, arguments, before = self.steps[turn]
        if before:
            await asyncio.to_thread(before)
        return ModelResponse(parts=[ToolCallPart(name, arguments)])


async def loop(toolset, *steps):
    script = Script(*steps)
    agent = Agent(FunctionModel(script), toolsets=[toolset])
    assert (await agent.run("Go on.")).output == "finished"
    return script


async def main():
    toolset = MCPToolset(MCP, headers={"Authorization": f"Bearer {KEY}"}, cache_tools=False, max_retries=5)
    async with toolset:
        # Its arguments are made from the schema that the gate lists.
        agent = Agent(TestModel(call_tools=["bank_balance"]), toolsets=[toolset])
        result = await agent.run("Go on.")
        returns = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
        assert [part.content for part in returns] == [{"done": True}], returns

        transfer = {"amount": 5, "to": "ann"}
        script = await loop(
            toolset,
            ("bank_balance", {"amount": 1, "to": "ann"}, None),
            ("bank_balance", {"amount": 1, "to": "ann", "more": 1}, None),
            ("bank_transfer", transfer, None),
            ("bank_transfer", transfer, lambda: approve_and_run("transfer")),
        )
        assert {"bank_balance", "bank_transfer"} <= script.offered[0], script.offered
        called, refused, waiting, approved = script.returned
        assert [part.outcome for part in script.returned] == ["success", "retried", "retried", "success"], script.returned
        assert called.content == approved.content == {"done": True}, script.returned
        assert "`more` is unknown" in refused.content, refused
        assert "Make the same call again" in waiting.content, waiting

        suspend()
        script = await loop(toolset)
        assert script.offered == [set()], script.offered
        script = await loop(toolset, ("bank_balance", {"amount": 1, "to": "ann"}, None))
        assert "done" not in str(script.returned), script.returned
        resume()
    print("pydantic-ai: done")


if __name__ == "__main__":
    asyncio.run(main())
    sys.exit(0)
