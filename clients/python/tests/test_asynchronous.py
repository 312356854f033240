"""What only asynchronous code can do: await handles and callbacks, and call concurrently."""

from __future__ import annotations

import asyncio

import pytest

from toolgate import AsyncClient, Client

MONEY = {"parameters": {"amount": 7, "currency": "usd"}}


def test_a_handle_is_awaited(world):
    async def run():
        async with AsyncClient(world.gate.url, world.agent()[1]) as client:
            call = await client.tools.invoke_detached("stripe", "charges.read", parameters={"charge_id": "ch_9"})
            assert (await call)["id"] == "ch_9"
            assert (await call)["id"] == "ch_9"

    asyncio.run(run())


def test_a_callback_may_be_asynchronous(world):
    async def approve(pending):
        await asyncio.to_thread(world.approver.decide, pending.approval_id, "approve")

    async def run():
        async with AsyncClient(world.gate.url, world.agent()[1]) as client:
            return await client.tools.invoke("stripe", "transfers.create", **MONEY, on_pending=approve)

    assert asyncio.run(run())["amount"] == 7
    with Client(world.gate.url, world.agent()[1]) as client, pytest.raises(TypeError, match="AsyncClient"):
        client.tools.invoke("stripe", "transfers.create", **MONEY, on_pending=approve)


def test_a_callback_that_fails_ends_the_call(world):
    def fail(pending):
        raise RuntimeError("of the callback")

    async def run():
        async with AsyncClient(world.gate.url, world.agent()[1]) as client:
            await client.tools.invoke("stripe", "transfers.create", **MONEY, on_pending=fail)

    with pytest.raises(RuntimeError, match="of the callback"):
        asyncio.run(run())


def test_calls_run_concurrently(world):
    service = world.service

    async def run():
        async with AsyncClient(world.gate.url, world.agent()[1]) as client:
            calls = [
                asyncio.create_task(client.tools.invoke("stripe", "charges.read", parameters={"charge_id": f"ch_{n}"}))
                for n in range(8)
            ]
            for _ in calls:
                await asyncio.to_thread(service.arrived.acquire)
            service.open.set()
            return await asyncio.gather(*calls)

    while service.arrived.acquire(blocking=False):
        pass
    service.open.clear()
    try:
        assert [result["id"] for result in asyncio.run(run())] == [f"ch_{n}" for n in range(8)]
    finally:
        service.open.set()


def test_a_cancelled_task_cancels_its_call(world):
    async def run(asked):
        async with AsyncClient(world.gate.url, world.agent()[1]) as client:
            waiting = client.tools.invoke("stripe", "transfers.create", **MONEY, on_pending=asked.set_result)
            task = asyncio.create_task(waiting)
            pending = await asked
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return pending.approval_id

    async def main():
        return await run(asyncio.get_running_loop().create_future())

    approval = asyncio.run(main())
    while (shown := world.approver.ask("GET", f"/approvals/{approval}"))["status"] == "pending":
        pass
    assert shown["status"] == "cancelled"
