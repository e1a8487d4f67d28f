"""The simulator: seeds per second of CPU, what the online checks cost, how a sweep scales.

All figures of a single run use one configuration (`FIXED`), with another seed in every round. The
swarm is measured, too: there every seed draws its own configuration, and most cost more (more
nodes, shorter heartbeats). CPU is measured, not wall time, except where two processes are compared
with one.

The cost of the checks is the CPU of a run with them over that of the same run without them. No
option leaves them out, so they are removed here by name: the online invariants, and the reference
model that judges every decision. Both runs must have the same rows, except for the model's own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple
from unittest.mock import patch

from bench.host import resident_mib
from bench.measure import Outcome, Report, interleave, middle, ratio
from ottla.sim.chance.choices import Drawn
from ottla.sim.run import Outcome as RunOutcome
from ottla.sim.run import run_choices
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.sweep import sweep
from ottla.sim.sweeps.sweep_folder import Plan as Sweep
from ottla.sim.world.reference_model import MODELLED

FIXED = RunConfig(
    profile="reference-strict",
    load_ms=20_000,
    records=360,
    loss_ppm=10_000,
    twice_ppm=10_000,
    late_ppm=10_000,
    reset_ppm=2_000,
    slow_sync_ppm=10_000,
    fault_every_ms=2_000,
)
"""20 simulated seconds, 3 nodes, 1 partition, 360 records, moderate faults of every kind."""
STRICT = RunConfig(profile=FIXED.profile)

SEEDS_PER_SECOND = 10
TIMES_REAL_TIME = 200
CHECKS = 1.2
"""CPU of a run with its online checks over that without."""
PLAIN_TURNS = 100_000
SCALING = 1.7
"""Seeds per second of two processes over those of one."""


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    """Seeds of each kind."""
    swept: int
    """Seeds of each sweep, all of `FIXED`."""
    swept_ms: int
    """How long each of them loads."""


FULL = Plan(rounds=25, swept=100, swept_ms=20_000)
QUICK = Plan(rounds=1, swept=2, swept_ms=500)


def run(plan: Plan) -> Report:
    """All of it."""
    run_choices(Drawn(1), FIXED.with_(load_ms=500, records=10), swarm=False)
    seeds = {name: count() for name in SIDES}

    def next_of(name: str) -> dict[str, float]:
        return measured(SIDES[name], next(seeds[name]))

    sides = {name: partial(next_of, name) for name in SIDES}
    rounds = interleave(plan.rounds, {**sides, "plain": plain})
    checks = ratio(rounds["checked"], rounds["unchecked"], "cpu")
    return Report(
        "simulator",
        [
            *_speed("20 s, 360 records", rounds["checked"], targets=True),
            _beside_plain(rounds),
            *_speed("swarm", rounds["swarm"], targets=False),
            Outcome("CPU with online checks over without", checks, "x", CHECKS),
            *_swept(plan),
        ],
    )


def fixed(seed: int) -> RunOutcome:
    """A run with all its checks."""
    return run_choices(Drawn(seed), FIXED, swarm=False)


def unchecked(seed: int) -> RunOutcome:
    """The same, but no invariant listens and no model is asked."""
    with (
        patch("ottla.sim.run.attach", lambda *_, **__: None),
        patch.dict(MODELLED, clear=True),
    ):
        return fixed(seed)


def _swarm(seed: int) -> RunOutcome:
    return run_choices(Drawn(seed), STRICT)


SIDES: dict[str, Callable[[int], RunOutcome]] = {
    "checked": fixed,
    "unchecked": unchecked,
    "swarm": _swarm,
}


def measured(one: Callable[[int], RunOutcome], seed: int) -> dict[str, float]:
    """CPU seconds of one run, and how much it was."""
    start = time.process_time()
    outcome = one(seed)
    cpu = time.process_time() - start
    simulated = outcome.simulated / 1e6
    return {"cpu": cpu, "simulated": simulated, "steps": outcome.steps, "rows": len(outcome.rows)}


def plain() -> dict[str, float]:
    """CPU seconds of a hundred thousand turns of Python that is not ours: how fast a machine is."""
    start = time.process_time()
    heap = [(each * 7919 % 1009, each) for each in range(100)]
    heapify(heap)
    seen: dict[int, int] = {}
    for turn in range(PLAIN_TURNS):
        at, name = heappop(heap)
        seen[name] = seen.get(name, 0) + at
        heappush(heap, (at + 1 + turn % 7, name))
    assert len(seen) == len(heap)
    return {"cpu": time.process_time() - start}


def _beside_plain(rounds: dict[str, list[dict[str, float]]]) -> Outcome:
    """What a seed costs on any machine, more or less: ratios can be compared where times cannot."""
    turns = PLAIN_TURNS * middle(rounds["checked"], "cpu") / middle(rounds["plain"], "cpu")
    nanos = 1e9 * middle(rounds["plain"], "cpu") / PLAIN_TURNS
    note = f"a heap, a dict: {nanos:.0f} ns a turn on this machine"
    return Outcome("20 s, 360 records: turns of plain Python", turns, "", note=note)


def _speed(name: str, rounds: list[dict[str, float]], *, targets: bool) -> list[Outcome]:
    cpu, simulated = middle(rounds, "cpu"), middle(rounds, "simulated")
    steps = middle(rounds, "steps")
    per_second, real = (SEEDS_PER_SECOND, TIMES_REAL_TIME) if targets else (None, None)
    note = f"{1000 * cpu:.0f} ms of CPU, {steps:,.0f} events, {1e6 * cpu / steps:.0f} us each"
    return [
        Outcome(f"{name}: seeds per CPU second", 1 / cpu, "", per_second, at_least=True, note=note),
        Outcome(f"{name}: times real time", simulated / cpu, "x", real, at_least=True),
    ]


def _swept(plan: Plan) -> list[Outcome]:
    """By the wall, which other work disturbs, and by the CPU, which says what splitting it costs:
    fresh processes, and handing results over."""
    settings = FIXED.with_(load_ms=plan.swept_ms).told()
    before = resident_mib()
    one, two = (_sweep(Sweep(0, plan.swept, settings), jobs) for jobs in (1, 2))
    grown = resident_mib() - before
    load = f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    note = f"{plan.swept / one.wall:.1f} and {plan.swept / two.wall:.1f} seeds/s, {load}"
    faster = one.wall / two.wall
    return [
        Outcome("sweep: 2 processes over 1", faster, "x", SCALING, at_least=True, note=note),
        Outcome("sweep: CPU of 2 processes over that of 1", two.cpu / one.cpu, "x"),
        Outcome(f"memory grown by {plan.swept} seeds", grown, "MiB"),
    ]


class _Took(NamedTuple):
    """Seconds of a sweep."""

    wall: float
    cpu: float
    """Of all processes."""


def _sweep(what: Sweep, jobs: int) -> _Took:
    start, before = time.perf_counter(), sum(os.times()[:4])
    assert sum(1 for _ in sweep(what, jobs)) == what.seeds
    return _Took(time.perf_counter() - start, sum(os.times()[:4]) - before)
