"""The deterministic loop: virtual time, what runs when, and how it ends.

Programs here are small coroutines. Those that are about the loop alone run on a bare
`DeterministicLoop`; those about the end of a run go through `run`, which shuts down as well.
"""

import asyncio
import gc
from contextvars import Context, ContextVar
from typing import Any

import pytest

from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.policies import shuffled
from ottla.sim.asyncio_runs.run import run


@pytest.fixture
def loop():
    made = DeterministicLoop()
    yield made
    made.close()


# ---- time


def test_time_is_virtual_and_jumps_to_the_next_timer(loop):
    async def main():
        await asyncio.sleep(1800)
        return loop.time(), loop.now()

    assert loop.run_until_complete(main()) == (1800.0, 1_800_000_000)


def test_time_stands_still_while_anything_is_ready(loop):
    async def main():
        loop.call_later(0.001, seen.append, "timer")
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not seen
        await asyncio.sleep(0.002)

    seen: list[Any] = []
    loop.run_until_complete(main())
    assert seen == ["timer"]


def test_timers_of_the_same_time_go_in_the_order_in_which_they_were_made(loop):
    async def main():
        for number in range(100):
            loop.call_at(0.5, seen.append, number)
            loop.call_at_micros(500_000, seen.append, number + 0.5)
        await asyncio.sleep(1)

    seen: list[Any] = []
    loop.run_until_complete(main())
    assert seen == [number / 2 for number in range(200)]


def test_a_timer_that_was_taken_back_does_not_move_time(loop):
    async def main():
        timers = [loop.call_later(10 + number, seen.append, number) for number in range(5000)]
        for timer in timers:
            timer.cancel()
        await asyncio.sleep(1)
        return loop.time()

    seen: list[Any] = []
    assert loop.run_until_complete(main()) == 1.0
    assert not seen


@pytest.mark.parametrize("delay", [1e-9, 4e-7])
def test_whatever_is_more_than_no_time_takes_a_microsecond(loop, delay):
    async def main():
        await asyncio.sleep(delay)
        return loop.now()

    assert loop.run_until_complete(main()) == 1


def test_a_time_that_is_past_is_now_behind_what_is_ready(loop):
    async def main():
        await asyncio.sleep(1)
        loop.call_soon(seen.append, "soon")
        loop.call_at(0.5, seen.append, "past")
        loop.call_later(-1, seen.append, "negative")
        loop.call_soon(seen.append, "sooner")
        await asyncio.sleep(0)
        return loop.time()

    seen: list[Any] = []
    assert loop.run_until_complete(main()) == 1.0
    assert seen == ["soon", "past", "negative", "sooner"]


def test_timeouts_and_deadlines_of_asyncio_work(loop):
    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(10), 3)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout_at(loop.time() + 2):
                await asyncio.Event().wait()
        return loop.time()

    assert loop.run_until_complete(main()) == 5.0


# ---- what the loop hands on


def test_callbacks_run_in_the_context_they_were_given(loop):
    variable = ContextVar("variable", default=0)

    async def main():
        variable.set(1)
        loop.call_soon(lambda: seen.append(variable.get()))
        variable.set(2)
        loop.call_later(1, lambda: seen.append(variable.get()))
        await asyncio.sleep(2)

    seen: list[Any] = []
    loop.run_until_complete(main())
    assert seen == [1, 2]


def test_an_empty_context_is_a_context(loop):
    variable = ContextVar("variable", default=0)

    async def main():
        variable.set(1)
        loop.call_soon(lambda: seen.append(variable.get()), context=Context())
        await asyncio.sleep(1)

    seen: list[Any] = []
    loop.run_until_complete(main())
    assert seen == [0]


def test_executors_run_inline_as_a_step(loop):
    async def main():
        steps = loop.trace.steps
        assert await loop.run_in_executor(None, sum, [1, 2, 3]) == 6
        assert await asyncio.to_thread(lambda: "inline") == "inline"
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return loop.time(), steps

    assert loop.run_until_complete(main()) == (0.0, 0)


def test_tasks_are_named_by_the_loop_and_not_by_the_process():
    async def main():
        return [asyncio.create_task(asyncio.sleep(0)).get_name() for _ in range(3)]

    assert run(lambda _: main()).result == run(lambda _: main()).result


def test_the_loop_serves_asyncios_own_runner():
    ended = []

    async def main():
        async def stays(number):
            try:
                await asyncio.sleep(100)
            finally:
                ended.append(number)

        for number in range(300):
            asyncio.create_task(stays(number))  # noqa: RUF006 - left to the runner
        await asyncio.sleep(1)
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=DeterministicLoop) as runner:
        assert runner.run(main()) == 1.0
    assert ended == list(range(300))


def test_stop_before_the_run_runs_what_is_ready_and_nothing_else(loop):
    seen: list[Any] = []
    loop.call_soon(loop.call_soon, seen.append, 2)
    loop.call_soon(seen.append, 1)
    loop.stop()
    loop.run_forever()
    assert seen == [1]


def test_a_closed_loop_does_nothing_more(loop):
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)
    assert loop.is_closed()


def test_asyncio_is_as_it_was_when_the_last_loop_is_closed():
    before = asyncio.all_tasks, asyncio.tasks.all_tasks
    one, other = DeterministicLoop(), DeterministicLoop()
    assert asyncio.all_tasks is not before[0]
    one.close()
    one.close()
    assert asyncio.all_tasks is not before[0]
    other.close()
    assert (asyncio.all_tasks, asyncio.tasks.all_tasks) == before


@pytest.mark.usefixtures("loop")
def test_other_loops_are_served_as_ever_meanwhile():
    async def main():
        future: Any = asyncio.Future()
        future.set_result(None)
        tasks: list[Any] = [asyncio.create_task(asyncio.sleep(0, number)) for number in range(5)]
        assert asyncio.all_tasks() == {*tasks, asyncio.current_task()}
        done, _ = await asyncio.wait({*tasks, asyncio.gather(asyncio.sleep(0)), future})
        completed = [await each for each in asyncio.as_completed([asyncio.sleep(0, "coroutine")])]
        return len(done), completed

    assert asyncio.run(main()) == (7, ["coroutine"])


# ---- garbage


@pytest.mark.slow
def test_garbage_is_collected_at_fixed_steps():
    """Finalisers run where the collector runs, so it must run at the same step each time."""

    class Dies:
        def __init__(self, loop):
            self.me, self.loop = self, loop

        def __del__(self):
            self.loop.call_soon(int)

    async def main(loop):
        for _ in range(2000):
            Dies(loop)
            await asyncio.sleep(0.001)

    def ran(junk):
        made = DeterministicLoop(policy=shuffled, collect_every=100)
        try:
            gc.disable()
            kept: list[Any] = [[] for _ in range(junk)]
            made.run_until_complete(main(made))
            return made.trace.digest, len(kept)
        finally:
            gc.enable()
            made.close()

    assert ran(0)[0] == ran(5000)[0]
