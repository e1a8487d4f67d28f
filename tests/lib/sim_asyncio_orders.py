"""What other deterministic loops of asyncio get wrong: orders that come out of sets. As a program.

`python -m sim_asyncio_orders [--perturb] [--warm] [--by-address]` runs every program here under
every policy and prints, as JSON, what order things happened in and the digest of the run. It needs
the standard library and `ottla.sim` only, so that any CPython can run it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from hashlib import blake2b
from random import Random
from typing import Any, TypeAlias

from ottla.sim.asyncio_runs import tasks as asyncio_tasks
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.policies import Policy, fifo, pct, shuffled, starving
from ottla.sim.asyncio_runs.run import run

TASKS = 600
GENERATORS = 600
POLICIES: dict[str, Policy] = {
    "fifo": fifo,
    "shuffled": shuffled,
    "pct": pct(4, horizon=2000),
    "starving": starving,
}
Heard: TypeAlias = list[int]
Program: TypeAlias = Callable[[DeterministicLoop, Heard], Coroutine[Any, Any, None]]


async def _hear_of_cancel(heard: Heard, number: int) -> None:
    try:
        await asyncio.sleep(1000)
    finally:
        heard.append(number)


async def _number(number: int) -> int:
    await asyncio.sleep(number * 7919 % TASKS // 50 * 0.001)
    return number


async def _fail() -> None:
    await asyncio.sleep(0.001)
    raise KeyError("abort")


async def aborted(_: DeterministicLoop, heard: Heard) -> None:
    """A task group that is aborted cancels what is in a set."""
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(TASKS):
                group.create_task(_hear_of_cancel(heard, number))
            group.create_task(_fail())
    except* KeyError:
        pass


async def waited(loop: DeterministicLoop, heard: Heard) -> None:
    """`asyncio.wait` returns sets."""
    waiting = {loop.create_task(_number(number)) for number in range(TASKS)}
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        heard += [task.result() for task in done]


async def mixed(loop: DeterministicLoop, heard: Heard) -> None:
    """Sets of what asyncio makes itself: futures of `gather` and of the loop, beside tasks."""
    gathers = [asyncio.gather(_number(number)) for number in range(TASKS // 3)]
    futures = [loop.create_future() for _ in range(TASKS // 3)]
    for number, future in enumerate(futures):
        loop.call_later(0.001, future.set_result, [number])
    done, _ = await asyncio.wait({*gathers, *futures})
    heard += [each.result()[0] for each in done]


async def gathered(_: DeterministicLoop, heard: Heard) -> None:
    """Who ends first, of many that are ready together."""

    async def ends(number: int) -> None:
        await _number(number)
        await asyncio.sleep(0)
        heard.append(number)

    await asyncio.gather(*map(ends, range(TASKS)))


async def completed(loop: DeterministicLoop, heard: Heard) -> None:
    """`as_completed` on tasks."""
    tasks = [loop.create_task(_number(number)) for number in range(TASKS)]
    heard += [await each for each in asyncio.as_completed(tasks)]


async def left(loop: DeterministicLoop, heard: Heard) -> None:
    """Tasks that run when the program ends are cancelled in the order in which they were made."""
    for number in range(TASKS):
        loop.create_task(_hear_of_cancel(heard, number))
    await asyncio.sleep(0.001)


async def all_of_them(loop: DeterministicLoop, heard: Heard) -> None:
    """`all_tasks` is a set."""
    tasks = [loop.create_task(_number(number), name=str(number)) for number in range(TASKS)]
    heard += [int(each.get_name()) for each in asyncio.all_tasks() if each.get_name().isdigit()]
    await asyncio.gather(*tasks)


async def generators(_: DeterministicLoop, heard: Heard) -> None:
    """Async generators that are left open are closed in the order in which they began."""

    async def numbers(number: int) -> AsyncIterator[int]:
        try:
            while True:
                yield number
        finally:
            await asyncio.sleep(0)
            heard.append(number)

    kept = [numbers(number) for number in range(GENERATORS)]
    for each in kept[1::2] + kept[::2]:
        await anext(each)
    _KEPT.extend(kept)


async def within(loop: DeterministicLoop, heard: Heard) -> None:
    """Tasks that async generators start, each of which a task goes through, and leaves off behind
    the first number. Half of the generators are dropped by that, and closed meanwhile; some of them
    only begin to when the program ends."""

    async def numbers(number: int) -> AsyncIterator[int]:
        try:
            while True:
                yield await loop.create_task(_number(number))
        finally:
            await loop.create_task(asyncio.sleep(0))
            heard.append(number + GENERATORS)

    async def goes_through(number: int) -> None:
        made = numbers(number)
        if number % 2:
            _KEPT.append(made)
        async for each in made:
            heard.append(each)
            break

    async with asyncio.TaskGroup() as group:
        for number in range(GENERATORS):
            group.create_task(goes_through(number))


_KEPT: list[Any] = []
PROGRAMS: dict[str, Program] = {
    each.__name__: each
    for each in (
        aborted,
        waited,
        mixed,
        gathered,
        completed,
        left,
        all_of_them,
        generators,
        within,
    )
}


def order(program: Program, policy: Policy, seed: int) -> tuple[Heard, str]:
    """What was heard in which order, and the digest of the run."""
    heard: Heard = []
    outcome = run(lambda loop: program(loop, heard), seed=seed, policy=policy)
    _KEPT.clear()
    return heard, outcome.digest


def orders(seed: int) -> dict[str, list[str]]:
    """Every program under every policy: digests of the order and of the run."""
    found = {}
    for name, program in PROGRAMS.items():
        for called, policy in POLICIES.items():
            heard, digest = order(program, policy, seed)
            said = blake2b(repr(heard).encode(), digest_size=8).hexdigest()
            found[f"{name} {called}"] = [said, digest]
    return found


def perturb() -> list[object]:
    """Another heap: what comes now lies elsewhere."""
    chance = Random()
    junk: list[Any] = [bytearray(chance.randrange(20, 2000)) for _ in range(20_000)]
    junk += [asyncio.Future(loop=asyncio.new_event_loop()) for _ in range(chance.randrange(5))]
    del junk[:: chance.randrange(2, 5)]
    return junk


def by_address() -> None:
    """Take the numbers away, as if nobody had thought of them."""
    for each in (asyncio_tasks.SerialTask, asyncio_tasks.SerialFuture):
        each.__hash__ = object.__hash__  # type: ignore[method-assign]


def main(arguments: list[str]) -> None:
    """See the module's text."""
    kept = perturb() if "--perturb" in arguments else []
    if "--by-address" in arguments:
        by_address()
    if "--warm" in arguments:
        for seed in range(10):
            for program in (aborted, waited):
                order(program, shuffled, 100 + seed)
    json.dump(orders(7), sys.stdout)
    del kept


if __name__ == "__main__":
    main(sys.argv[1:])
