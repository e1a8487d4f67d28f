"""`ottla compare --fuzz` between two profiles in one process: steps a second of CPU.

A step is drawn, read as a case, built, asked of two brokers and judged. Nothing may differ, so
nothing is shrunk. Seconds are of CPU: what else the machine does should not count.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from bench.measure import Outcome, Report
from ottla.compare.brokers import ProfileBroker
from ottla.compare.fuzz.hunt import Hunt
from ottla.compare.running import Comparison

STEPS_A_SECOND = 2_000
PROFILE = "kafka-4.3"


@dataclass(slots=True)
class Plan:
    """How much is asked."""

    steps: int
    warm: int = 300
    """Steps before that, which import and compile."""
    seed: int = 1


FULL = Plan(10_000)
QUICK = Plan(60, warm=20)


def run(plan: Plan) -> Report:
    """One profile beside itself."""
    logging.getLogger("ottla").addHandler(logging.NullHandler())
    _hunted(plan.seed + 1, plan.warm)
    start = time.process_time()
    hunt = _hunted(plan.seed, plan.steps)
    rate = hunt.steps / (time.process_time() - start)
    note = f"{hunt.steps} steps in {hunt.sequences} sequences, {PROFILE} beside itself"
    fuzz = Outcome("fuzz", rate, "steps/s", STEPS_A_SECOND, at_least=True, note=note)
    return Report("comparing", [fuzz])


def _hunted(seed: int, steps: int) -> Hunt:
    target, other = ProfileBroker(PROFILE), ProfileBroker(PROFILE)
    hunt = Hunt(Comparison(target, other, PROFILE), seed, steps)
    found = [each for each in hunt.run() if each is not None]
    assert not found, f"{PROFILE} differs from itself: {found}"
    return hunt
