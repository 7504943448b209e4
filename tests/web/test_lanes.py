"""Work in lanes: bounded, and nothing that is stuck stops another."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import pytest

from vidkin.web.lanes import BusyError, Lane, StuckError


def test_lane_returns_results_and_raises_errors() -> None:
    lane = Lane("test", workers=2, waiting=2, seconds=5)

    async def ask() -> None:
        assert await lane.run(lambda: threading.current_thread().name) == "vidkin test"
        with pytest.raises(ZeroDivisionError):
            await lane.run(lambda: 1 // 0)

        def fail() -> None:
            raise TimeoutError("of the work")

        with pytest.raises(TimeoutError, match="of the work"):
            await lane.run(fail)
        assert await asyncio.gather(*(lane.run(lambda n=n: n * n) for n in range(4))) == [0, 1, 4, 9]

    asyncio.run(ask())


def test_calls_beyond_the_limit_are_refused_and_the_rest_served() -> None:
    lane, gate = Lane("test", workers=1, waiting=1, seconds=5), threading.Event()

    async def ask() -> None:
        first, second = (asyncio.create_task(lane.run(gate.wait)) for _ in range(2))
        await asyncio.sleep(0.05)
        with pytest.raises(BusyError, match="too many requests for test"):
            await lane.run(gate.wait)
        gate.set()
        assert await first
        assert await second
        assert await lane.run(lambda: "free again") == "free again"

    asyncio.run(ask())


def test_stuck_call_is_abandoned_and_its_thread_replaced() -> None:
    lane, gate = Lane("test", workers=1, waiting=4, seconds=0.2), threading.Event()

    async def ask() -> None:
        began = time.monotonic()
        with pytest.raises(StuckError, match=r"longer than 0\.2 s"):
            await lane.run(gate.wait)
        assert time.monotonic() - began < 2
        # The only thread is still stuck; another one answers.
        for number in range(3):
            assert await lane.run(lambda n=number: n) == number
        gate.set()
        assert await lane.run(lambda: "and after it") == "and after it"

    asyncio.run(ask())


def test_abandoned_waiting_call_never_runs() -> None:
    lane, gate, calls = Lane("test", workers=1, waiting=4, seconds=0.2), threading.Event(), []

    async def ask() -> None:
        stuck = asyncio.create_task(lane.run(gate.wait))
        waiting = asyncio.create_task(lane.run(lambda: calls.append("late")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.set()
        assert await stuck
        await lane.run(lambda: None)

    asyncio.run(ask())
    assert calls == []


def test_broken_lane_reports_itself() -> None:
    lane, gate = Lane("test", workers=1, waiting=0, seconds=0.01), threading.Event()

    async def ask() -> None:
        async def give_up_many() -> None:
            for _ in range(200):  # one that is given up before its thread begins does not count
                with contextlib.suppress(StuckError):
                    await lane.run(gate.wait)

        with pytest.raises(BusyError):
            await give_up_many()
        gate.set()

    asyncio.run(ask())


def test_clients_take_turns_and_know_their_position() -> None:
    lane, gate, order = Lane("test", workers=1, waiting=16, seconds=5), threading.Event(), []

    async def ask() -> None:
        first = asyncio.create_task(lane.run(gate.wait, ticket="first"))
        await asyncio.sleep(0.05)
        calls = ["a1", "a2", "a3", "b1", "c1"]
        tasks = [
            asyncio.create_task(lane.run(lambda name=name: order.append(name), client=name[0], ticket=name))
            for name in calls
        ]
        await asyncio.sleep(0.05)
        # One of each client, then the rest of the one that asked for most.
        assert {name: lane.position(name) for name in calls} == {"a1": 1, "b1": 2, "c1": 3, "a2": 4, "a3": 5}
        assert lane.position("first") == 0
        assert lane.position("unknown") is None
        tasks[3].cancel()
        await asyncio.sleep(0.05)
        assert {name: lane.position(name) for name in calls} == {"a1": 1, "b1": None, "c1": 2, "a2": 3, "a3": 4}
        gate.set()
        await asyncio.gather(first, *tasks, return_exceptions=True)
        assert order == ["a1", "c1", "a2", "a3"]

    asyncio.run(ask())


def test_call_that_does_not_start_in_time_is_refused() -> None:
    lane, gate = Lane("test", workers=1, waiting=4, seconds=0.3), threading.Event()

    async def ask() -> None:
        first = asyncio.create_task(lane.run(gate.wait))
        await asyncio.sleep(0.2)
        # The stuck one is given up before this one, and its place is taken by a call that is as slow.
        second, third = (asyncio.create_task(lane.run(gate.wait)) for _ in range(2))
        with pytest.raises(StuckError):
            await first
        with pytest.raises(StuckError):
            await second
        with pytest.raises(BusyError, match=r"not begun in 0\.3 s; try again in a moment"):
            await third
        gate.set()

    asyncio.run(ask())


def test_one_client_cannot_fill_the_queue() -> None:
    lane, gate = Lane("test", workers=1, waiting=8, seconds=5, of_client=2), threading.Event()

    async def ask() -> None:
        tasks = [asyncio.create_task(lane.run(gate.wait, client="greedy")) for _ in range(3)]
        await asyncio.sleep(0.05)
        with pytest.raises(BusyError):
            await lane.run(gate.wait, client="greedy")
        other = asyncio.create_task(lane.run(lambda: "served", client="other"))
        await asyncio.sleep(0.05)
        gate.set()
        assert await other == "served"
        await asyncio.gather(*tasks)

    asyncio.run(ask())


def test_disconnecting_does_not_start_more_work_than_threads() -> None:
    lane, gate, running = Lane("test", workers=2, waiting=8, seconds=5), threading.Event(), []

    def work() -> None:
        running.append(1)
        gate.wait()

    async def ask() -> None:
        for _ in range(6):
            task = asyncio.create_task(lane.run(work))
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.sleep(0)
        assert len(running) == 2  # the other four left before their turn
        gate.set()
        assert await lane.run(lambda: "free again") == "free again"

    asyncio.run(ask())
