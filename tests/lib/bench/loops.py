"""The deterministic asyncio loop: steps per second of CPU, beside asyncio's own and another one.

Fifty tasks wait again and again: for nothing (`sleep(0)`), or for a time that is different for each
(`sleep(t)`). asyncio's own loop really waits, so it is measured with the first only;
async-solipsism is another loop of virtual time, without a seed, and is measured where it is
installed. A wait for nothing is one step, a wait for a time two: the timer, and the task that goes
on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bench.measure import Outcome, Report, interleave, middle, ratio
from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.asyncio_runs.policies import pct, shuffled

TARGET = 50_000
TASKS = 50
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "deterministic": DeterministicLoop,
    "shuffled": partial(DeterministicLoop, policy=shuffled),
    "pct": partial(DeterministicLoop, policy=pct()),
    "asyncio": asyncio.SelectorEventLoop,
}
STEPS_A_WAIT = {"sleep(0)": 1, "sleep(t)": 2}


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    waits: int


FULL = Plan(rounds=7, waits=100_000)
QUICK = Plan(rounds=1, waits=2_000)


def run(plan: Plan) -> Report:
    """Both kinds of waiting, on every loop that can do them."""
    loops = dict(LOOPS)
    if find_spec("async_solipsism") is not None:
        loops["async-solipsism"] = import_module("async_solipsism").EventLoop
    outcomes = []
    for kind, wait in (("sleep(0)", _yields), ("sleep(t)", _sleeps)):
        able = {
            name: made for name, made in loops.items() if kind == "sleep(0)" or name != "asyncio"
        }
        sides = {name: partial(_measure, made, wait, plan.waits) for name, made in able.items()}
        outcomes += _compare(kind, interleave(plan.rounds, sides))
    return Report("loops", outcomes)


def _compare(kind: str, rounds: dict[str, list[dict[str, float]]]) -> list[Outcome]:
    ours = rounds["deterministic"]
    steps = STEPS_A_WAIT[kind]
    outcomes = [
        Outcome(
            f"{kind}, steps per CPU second, {name}",
            middle(rounds[name], "waits") * steps,
            "",
            TARGET,
            at_least=True,
        )
        for name in ("deterministic", "shuffled", "pct")
    ]
    for name in ("asyncio", "async-solipsism"):
        if name in rounds:
            note = f"{middle(ours, 'waits'):,.0f} of {middle(rounds[name], 'waits'):,.0f} waits/s"
            over = ratio(ours, rounds[name], "waits")
            outcomes.append(Outcome(f"{kind}, deterministic over {name}", over, "x", note=note))
    return outcomes


def _measure(
    made: Callable[[], asyncio.AbstractEventLoop],
    wait: Callable[[int, int], Coroutine[Any, Any, None]],
    waits: int,
) -> dict[str, float]:
    loop = made()
    try:
        start = time.process_time()
        loop.run_until_complete(_all(wait, waits))
        return {"waits": waits / (time.process_time() - start)}
    finally:
        loop.close()


async def _all(wait: Callable[[int, int], Coroutine[Any, Any, None]], waits: int) -> None:
    await asyncio.gather(*(wait(number, waits // TASKS) for number in range(TASKS)))


async def _yields(_: int, waits: int) -> None:
    for _turn in range(waits):
        await asyncio.sleep(0)


async def _sleeps(number: int, waits: int) -> None:
    for turn in range(waits):
        await asyncio.sleep(0.001 + (number * 7919 + turn * 104_729) % 1000 * 1e-6)
