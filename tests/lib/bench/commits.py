"""Group commit: with a disk below, syncs per request fall as more requests are in flight."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.idempotent import Bench
from bench.measure import Outcome, Report

IN_FLIGHT = (1, 5, 20, 64)


@dataclass(slots=True)
class Plan:
    """Requests for each number in flight."""

    requests: int


FULL = Plan(1_000)
QUICK = Plan(130)


def run(plan: Plan) -> Report:
    """A cluster of three, and of one for information, on LMDB."""
    report = Report("commits", [])
    bench = Bench()
    try:
        for nodes in (3, 1):
            with tempfile.TemporaryDirectory() as folder:
                bench.fresh(nodes=nodes, data_dir=str(Path(folder) / "data"))
                report.outcomes += _syncs(bench, plan, nodes)
                bench.host.ask("drop")
    finally:
        bench.close()
    return report


def _syncs(bench: Bench, plan: Plan, nodes: int) -> list[Outcome]:
    bench.round(1_000, 64, idempotent=False)
    outcomes = []
    previous: float | None = None
    for in_flight in IN_FLIGHT:
        found = bench.round(1_000, plan.requests, idempotent=False, in_flight=in_flight)
        syncs = found["syncs"] / plan.requests
        outcomes.append(
            Outcome(
                f"syncs per request, {nodes} node{'s' * (nodes > 1)}, {in_flight} in flight",
                syncs,
                "",
                previous,
                note=f"p50 {found['p50_ms']:.2f} ms",
            )
        )
        previous = syncs
    return outcomes
