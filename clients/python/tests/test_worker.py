"""Workers: they take the tasks of their agent, with the tools that were delegated for them and no others."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import threading
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from document import ASYNC_HOOKS, HOOKS
from gate import SCOPES, Admin
from toolgate import AsyncClient, Client, Retry, Worker
from toolgate.exceptions import GrantContextError, GrantScopeError, StoppedError

READ = {"service": "stripe", "scopes": ["charges.read"]}


@dataclass
class Team:
    """A coordinator with tools that it may delegate, an intent, and a worker that has none."""

    world: Any
    lead: Admin
    worker: str
    key: str
    intent: str

    def task(self, name: str = "read", **more: object) -> dict:
        body = {"intent_id": self.intent, "name": name, **more}
        return self.lead.ask("POST", "/tasks", body)

    def shown(self, task: dict) -> dict:
        return self.lead.ask("GET", f"/tasks/{task['id']}")

    def delegate(self, task: dict, scopes: list[str]) -> str:
        """A grant of the worker that is bound to the task."""
        (grant,) = self.lead.ask("GET", f"/grants?agent_id={self.lead.name}")["grants"]
        context = {"intent_id": self.intent, "task_id": task["id"]}
        body = {"target_agent_id": self.worker, "scopes": scopes, "context": context}
        return self.lead.ask("POST", f"/grants/{grant['id']}/delegate", body)["id"]


@pytest.fixture
def team(world):
    lead, _ = world.agent([])
    key = world.admin.ask("POST", f"/agents/{lead}/keys")["key"]
    world.admin.ask("PATCH", f"/agents/{lead}", {"permissions": ["tools.invoke", "tools.delegate"]})
    world.admin.grant(world.credential, lead, SCOPES, delegatable=True, delegation_depth=1)
    admin = Admin(world.gate.url, key)
    admin.name = lead
    worker, worker_key = world.agent([])
    intent = admin.ask("POST", "/intents", {"title": "Quarterly report", "status": "active"})["id"]
    admin.ask("POST", f"/intents/{intent}/agents", {"agent_id": worker})
    yield Team(world, admin, worker, worker_key, intent)
    admin.http.close()


@pytest.fixture(params=["blocking", "asynchronous"])
def work(request, world):
    """Runs a worker of either kind once; its function is written once, and awaits nothing where it is blocking."""

    def run(key: str, function: Any, **options: Any) -> Any:
        options = {"lease_seconds": 60, **options}
        if request.param == "blocking":

            @Worker(**options)
            def blocking(ctx):
                return drive(function(ctx))

            http = httpx.Client(event_hooks=HOOKS)
            with Client(world.gate.url, key, retry=Retry(attempts=1), http=http) as client:
                return blocking.run_once(client)

        @Worker(**options)
        async def asynchronous(ctx):
            return await drive_async(function(ctx))

        async def main():
            http = httpx.AsyncClient(event_hooks=ASYNC_HOOKS)
            async with AsyncClient(world.gate.url, key, retry=Retry(attempts=1), http=http) as client:
                return await asynchronous.run_once(client)

        return asyncio.run(main())

    return run


def drive(function):
    """Runs a generator that yields what is to be awaited."""
    outcome = None
    try:
        while True:
            outcome = function.send(outcome)
    except StopIteration as stop:
        return stop.value


async def drive_async(function):
    step = functools.partial(function.send, None)
    try:
        while True:
            awaited = step()
            try:
                step = functools.partial(function.send, await awaited)
            except Exception as error:
                step = functools.partial(function.throw, error)
    except StopIteration as stop:
        return stop.value


def test_a_worker_takes_a_task_and_completes_it_with_what_the_function_returns(team, work):
    task = team.task(input={"charge_id": "ch_3"}, capabilities_required=["billing"], assigned_agent=team.worker)
    grant = team.delegate(task, ["charges.read"])

    def process(ctx):
        assert (ctx.task.id, ctx.intent_id, ctx.task.status) == (task["id"], team.intent, "running")
        charge = yield ctx.tools.call("stripe", "charges.read", parameters={"charge_id": ctx.input["charge_id"]})
        assert charge.grant_id == grant
        return {"charge_id": charge.result["id"], "invocation": charge.invocation_id}

    ended = work(team.key, process, capabilities=["billing", "research"])
    assert (ended.status, ended.output["charge_id"]) == ("completed", "ch_3")
    assert team.shown(task)["output"] == ended.output
    record = team.world.admin.ask("GET", f"/invocations/{ended.output['invocation']}")
    assert record["context"]["task_id"] == task["id"]
    assert record["context"]["intent_id"] == team.intent
    assert team.world.admin.ask("GET", f"/grants/{grant}")["status"] == "revoked"


def test_a_task_has_only_its_own_tools(team, work):
    own = team.world.admin.grant(team.world.credential, team.worker, ["charges.read", "refunds.create"])
    task = team.task(assigned_agent=team.worker)
    bound = team.delegate(task, ["charges.read"])

    def process(ctx):
        tools = yield ctx.tools.list()
        assert [(tool.tool, tool.grant_id) for tool in tools] == [("charges.read", bound)]
        grants = yield ctx.tools.grants()
        assert [grant.id for grant in grants] == [bound]
        with pytest.raises(GrantScopeError) as refused:
            yield ctx.tools.invoke("stripe", "refunds.create", parameters={"amount": 1, "currency": "usd"})
        assert list(refused.value.available_scopes) == ["charges.read"]
        with pytest.raises(GrantContextError):
            yield ctx.tools.invoke("stripe", "charges.read", parameters={"charge_id": "ch_1"}, grant_id=own)
        toolset = yield ctx.tools_for("openai")
        assert list(toolset.names) == ["stripe_charges__read"]
        return len(toolset)

    ended = work(team.key, process)
    assert (ended.status, ended.output) == ("completed", {"result": 1}), ended


def test_a_function_that_fails_fails_its_task(team, work):
    task = team.task()

    def process(ctx):
        raise LookupError("no such customer")
        yield

    ended = work(team.key, process)
    assert (ended.status, ended.error) == ("failed", "LookupError: no such customer")
    assert team.shown(task)["status"] == "failed"


def test_an_output_that_the_gate_does_not_take_fails_the_task(team, work):
    def process(ctx):
        return {"number": float("nan")}
        yield

    team.task()
    assert work(team.key, process).status == "failed"


def test_tasks_of_others_and_for_others_are_left_alone(team, work):
    def process(ctx):
        raise AssertionError("taken")
        yield

    team.task(assigned_agent=team.lead.name)
    team.task(capabilities_required=["research"])
    first = team.task()
    team.task(depends_on=[first["id"]])
    team.task(requires_tools=[READ])
    other = team.lead.ask("POST", "/intents", {"title": "Another"})["id"]
    team.lead.ask("POST", "/tasks", {"intent_id": other, "name": "invisible"})

    def only(ctx):
        return ctx.task.id
        yield

    assert work(team.key, only, capabilities=["billing"]).output == {"result": first["id"]}
    # Now the one that depended on it is ready.
    assert work(team.key, only, capabilities=["billing"]).status == "completed"
    assert work(team.key, process, capabilities=["billing"]) is None
    assert work(team.key, process, intent_id=other) is None


def test_urgent_tasks_come_first(team, work):
    def name(ctx):
        return ctx.task.name
        yield

    for priority in ("low", "normal", "critical", "high"):
        team.task(priority, priority=priority)
    order = [work(team.key, name).output["result"] for _ in range(4)]
    assert order == ["critical", "high", "normal", "low"]


def test_a_task_is_held_by_a_lease_while_the_function_runs(team, work):
    task = team.task()

    def process(ctx):
        (lease,) = team.lead.ask("GET", f"/intents/{team.intent}/leases")["leases"]
        assert (lease["task_id"], lease["agent_id"]) == (task["id"], team.worker)
        return None
        yield

    assert work(team.key, process).output == {}
    assert team.lead.ask("GET", f"/intents/{team.intent}/leases")["leases"] == []
    again = team.task()

    def unleased(ctx):
        assert team.lead.ask("GET", f"/intents/{team.intent}/leases")["leases"] == []
        assert ctx.task.id == again["id"]
        return None
        yield

    assert work(team.key, unleased, lease_seconds=None).status == "completed"


def test_a_task_that_is_cancelled_meanwhile_is_lost(team, work):
    from toolgate.worker import TaskLostError

    task = team.task()

    def process(ctx):
        headers = {"If-Match": str(ctx.task.version)}
        team.lead.ask("PATCH", f"/tasks/{task['id']}", {"status": "cancelled"}, **headers)
        return None
        yield

    with pytest.raises(TaskLostError, match="cancelled"):
        work(team.key, process)


def test_a_task_that_others_describe_meanwhile_is_completed(team, work):
    task = team.task()

    def process(ctx):
        headers = {"If-Match": str(ctx.task.version)}
        team.lead.ask("PATCH", f"/tasks/{task['id']}", {"description": "more"}, **headers)
        return None
        yield

    assert work(team.key, process).status == "completed"


def test_a_worker_runs_until_it_is_stopped(team):
    tasks = [team.task(input={"number": number}) for number in range(3)]
    done = []

    @Worker(poll_seconds=0.05)
    def process(ctx):
        done.append(ctx.task.id)
        if len(done) == len(tasks):
            process.stop()

    with Client(team.world.gate.url, team.key) as client:
        process.run(client)
    assert done == [task["id"] for task in tasks]
    assert {team.shown(task)["status"] for task in tasks} == {"completed"}

    @Worker(poll_seconds=0.05)
    async def later(ctx):
        done.append(ctx.task.id)
        later.stop()

    async def main():
        async with AsyncClient(team.world.gate.url, team.key) as client:
            running = asyncio.create_task(later.run(client))
            await asyncio.to_thread(team.task)
            await running

    asyncio.run(main())
    assert len(done) == 4


def test_a_signal_lets_the_current_task_end(team):
    task = team.task()

    @Worker(poll_seconds=0.05)
    def process(ctx):
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with Client(team.world.gate.url, team.key) as client:
        process.run(client)
    assert team.shown(task)["status"] == "completed"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_cancelled_asynchronous_worker_fails_its_task(team):
    task = team.task()

    async def main():
        started = asyncio.Event()

        @Worker()
        async def process(ctx):
            started.set()
            await asyncio.Event().wait()

        async with AsyncClient(team.world.gate.url, team.key) as client:
            running = asyncio.create_task(process.run(client))
            await started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(main())
    assert team.shown(task)["status"] == "failed"


def test_leases_are_renewed(team):
    renewed = threading.Event()

    @Worker(lease_seconds=1)
    def process(ctx):
        (first,) = team.lead.ask("GET", f"/intents/{team.intent}/leases")["leases"]
        while True:
            (now,) = team.lead.ask("GET", f"/intents/{team.intent}/leases")["leases"]
            if now["expires_at"] > first["expires_at"]:
                renewed.set()
                return

    team.task()
    with Client(team.world.gate.url, team.key) as client:
        assert process.run_once(client).status == "completed"
    assert renewed.is_set()


def test_a_stopped_agent_stops_working(team):
    @Worker(poll_seconds=0.05)
    def process(ctx):
        raise StoppedError("stopped by an operator", code="STOPPED")

    task = team.task()
    with Client(team.world.gate.url, team.key) as client, pytest.raises(StoppedError):
        process.run(client)
    assert team.shown(task)["status"] == "failed"


def test_a_worker_is_still_the_function_that_it_was_made_of():
    @Worker(capabilities=["billing"])
    def process(ctx):
        return ctx.input

    @Worker()
    async def later(ctx):
        return ctx.input

    class Context:
        input = {"a": 1}

    assert process(Context()) == {"a": 1}
    assert asyncio.run(later(Context())) == {"a": 1}
