"""Nothing that fails under the deterministic loop is overlooked, and no run goes on for ever.

asyncio logs such things and goes on. Here they end the run; tests say with what words, because
whoever reads them has nothing else.
"""

import asyncio
import gc
from contextlib import suppress
from typing import Any

import pytest

from ottla.sim.asyncio_runs.engine import DeadlockError, LivelockError, RunFailedError
from ottla.sim.asyncio_runs.event_loop import HOUR, DeterministicLoop
from ottla.sim.asyncio_runs.run import run


@pytest.fixture
def loop():
    made = DeterministicLoop()
    yield made
    made.close()


def test_an_exception_in_a_callback_fails_the_run_at_once(loop):
    async def main():
        loop.call_later(1, lambda: 1 // 0)
        await asyncio.sleep(5)

    with pytest.raises(RunFailedError, match="ZeroDivisionError") as failed:
        loop.run_until_complete(main())
    assert loop.time() == 1.0
    assert [type(each.exception) for each in failed.value.failures] == [ZeroDivisionError]


def test_a_task_whose_exception_nobody_asks_for_fails_the_run():
    async def fails():
        raise KeyError("unheard")

    async def forgets(loop):
        loop.create_task(fails())
        await asyncio.sleep(1)

    async def keeps(loop):
        kept.append(loop.create_task(fails()))
        await asyncio.sleep(1)

    async def hides_in_a_cycle(loop):
        task = loop.create_task(fails())
        task.add_done_callback(lambda _: task)
        await asyncio.sleep(1)

    kept: list[asyncio.Task[None]] = []
    for program in (forgets, keeps, hides_in_a_cycle):
        with pytest.raises(RunFailedError, match="unheard"):
            run(program)


def test_a_task_whose_exception_is_asked_for_fails_nothing():
    async def fails():
        raise KeyError("heard")

    async def main(loop):
        task = loop.create_task(fails())
        await asyncio.sleep(1)
        return repr(task.exception())

    assert run(main).result == "KeyError('heard')"


def test_what_is_reported_to_the_exception_handler_fails_the_run(loop):
    told = []

    async def main():
        loop.set_exception_handler(lambda _, context: told.append(context["message"]))
        loop.call_exception_handler({"message": "it broke"})
        await asyncio.sleep(1)

    with pytest.raises(RunFailedError, match="it broke"):
        loop.run_until_complete(main())
    assert told == ["it broke"]


def test_a_task_that_vanishes_while_it_waits_fails_the_run():
    async def main(loop):
        async def forgotten():
            await loop.create_future()

        loop.create_task(forgotten())
        await asyncio.sleep(1)
        gc.collect()
        await asyncio.sleep(1)

    with pytest.raises(RunFailedError, match="destroyed but it is pending"):
        run(main)


def test_the_programs_own_exception_comes_through_with_what_failed_behind_it():
    async def main(loop):
        async def breaks_at_the_end():
            try:
                await asyncio.sleep(100)
            finally:
                raise KeyError("behind")

        kept = loop.create_task(breaks_at_the_end())
        await asyncio.sleep(1)
        raise ValueError(kept.get_name())

    with pytest.raises(ValueError, match="Task-2") as raised:
        run(main)
    assert any("behind" in note for note in raised.value.__notes__)


def test_a_task_that_does_not_end_fails_the_run():
    async def main(loop):
        async def stubborn():
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)

        loop.create_task(stubborn())
        await asyncio.sleep(1)

    with pytest.raises(
        RunFailedError, match=r"does not end when it is cancelled: Task-2 .*stubborn"
    ):
        run(main)


def test_an_async_generator_that_breaks_as_it_is_closed_fails_the_run():
    async def broken():
        try:
            yield 1
        finally:
            raise KeyError("at the end")

    async def main(_):
        kept.append(broken())
        await anext(kept[0])

    kept: list[Any] = []
    with pytest.raises(RunFailedError, match="at the end"):
        run(main)


def test_a_deadlock_says_who_waits_where(loop):
    async def holder():
        await asyncio.Event().wait()

    async def main():
        await asyncio.create_task(holder(), name="the holder")

    with pytest.raises(
        DeadlockError, match=r"the holder .*holder.* at .*locks.py:\d+ in Event.wait"
    ):
        loop.run_until_complete(main())


def test_time_that_does_not_move_is_a_livelock(loop, monkeypatch):
    monkeypatch.setattr("ottla.sim.asyncio_runs.engine.STANDSTILL", 10_000)

    async def main():
        while True:  # noqa: ASYNC110 - on purpose
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match="time stands still at 0 us"):
        loop.run_until_complete(main())


def test_time_that_passes_the_limit_is_a_livelock(loop):
    async def beats():
        while True:  # noqa: ASYNC110 - on purpose
            await asyncio.sleep(60)

    async def main():
        beating = asyncio.create_task(beats())
        await asyncio.Event().wait()
        beating.cancel()

    with pytest.raises(LivelockError, match=f"virtual time has passed {HOUR} us"):
        loop.run_until_complete(main())
