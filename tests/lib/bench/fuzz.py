"""A broker under hostile frames: how it grows, and how long a client that behaves has to wait.

What is sent, and what is looked at around it, is the fuzz's own (`fuzz_broker`).
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure import Outcome, Report
from fuzz_broker import GROWTH_BYTES, hostile_frames, under_fire


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    frames: int
    seed: int = 1


FULL = Plan(20_000)
QUICK = Plan(300)


def run(plan: Plan) -> Report:
    """One broker of one node in a process of its own, fired at as fast as it answers."""
    found = under_fire(hostile_frames(plan.seed, plan.frames))
    outcome, beside = found.outcome, found.bystander
    ends = f"connection kept {outcome.answered}, closed {outcome.closed}, silent {outcome.silent}"
    return Report(
        "fuzz",
        [
            Outcome("hostile frames", outcome.sent / outcome.seconds, "/s", note=ends),
            Outcome(
                "memory more than at the start", found.grown_bytes / 2**20, "MB", GROWTH_BYTES >> 20
            ),
            Outcome(
                "a request of a client that behaves, p99",
                beside["p99"],
                "ms",
                note=f"p50 {beside['p50']} ms, longest {beside['longest']} ms",
            ),
        ],
    )
