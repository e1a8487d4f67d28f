"""An idempotent producer beside a plain one: what idempotence costs (promise-R6).

Turns, messages between nodes and syncs are *counted*, with bursts in lockstep and without
heartbeats, so that they depend only on the requests: the numbers must be equal. *CPU* is measured
in alternating rounds. *Latency* is measured with one request in flight, where a round trip between
nodes takes milliseconds, and where every commit waits for a disk.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.host import TOPIC
from bench.measure import Outcome, Report, interleave, middle, ratio
from bench.pipe import Child
from bench.throughput import FULL as THROUGHPUT
from bench.throughput import PATIENT
from bench.throughput import QUICK as THROUGHPUT_QUICK
from bench.throughput import Plan as ThroughputPlan

STILL: dict[str, Any] = {"heartbeat_ms": 30_000, "election_timeout_ms": 60_000}
"""Nothing happens by the clock."""
COUNTED = ("turns", "messages", "syncs")
CPU_TARGETS = {"1 KB": (1_000, 1.10), "100 KB": (100_000, 1.02)}
LATENCY_TARGET = 1.02
LINK_DELAY_MS = 1
"""One way; timers of the event loop have steps of a millisecond."""
BURSTS = {"1 KB": (1_000, 5), "100 KB": (100_000, 1)}
"""Size and requests of a burst: small enough to arrive in one piece."""


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    cpu: ThroughputPlan
    counted: int
    """Requests of a counted run."""
    latency_rounds: int
    latency: int
    """Requests of a latency round."""


FULL = Plan(THROUGHPUT, counted=1_000, latency_rounds=7, latency=300)
QUICK = Plan(THROUGHPUT_QUICK, counted=50, latency_rounds=1, latency=50)


class Bench:
    """A load generator and a host."""

    def __init__(self) -> None:
        self.load = Child("bench.load")
        self.host = Child("bench.host")
        self._producers = itertools.count(1_000)

    def close(self) -> None:
        """End them."""
        self.load.close()
        self.host.close()

    def round(
        self, size: int, count: int, *, idempotent: bool, lockstep: int = 0, in_flight: int = 5
    ) -> dict[str, float]:
        """One round against the cluster there is."""
        before = self.host.ask("counts")
        found = self.load.ask(
            "run",
            address=self.address,
            topic=TOPIC,
            size=size,
            count=count,
            producer_id=next(self._producers) if idempotent else -1,
            lockstep=bool(lockstep),
            in_flight=lockstep or in_flight,
        )
        after = self.host.ask("counts")
        counts = {name: after[name] - before[name] for name in COUNTED}
        used = (after["cpu"] - before["cpu"]) / count * 1e6
        return counts | {"cpu_us": used, "p50_ms": found["p50"] * 1e3, "p99_ms": found["p99"] * 1e3}

    def fresh(self, **settings: Any) -> None:
        """A fresh cluster."""
        self.address = self.host.ask("fresh", **settings)["address"]

    def fresh_round(self, size: int, count: int, *, idempotent: bool) -> dict[str, float]:
        """One round against a fresh cluster, after a warm-up of the same kind."""
        self.fresh(**PATIENT)
        self.round(size, max(5, count // 10), idempotent=idempotent)
        return self.round(size, count, idempotent=idempotent)


def run(plan: Plan) -> Report:
    """All of it."""
    report = Report("idempotent", [])
    bench = Bench()
    try:
        for name in BURSTS:
            report.outcomes.append(counted(bench, plan, name))
        for name in CPU_TARGETS:
            report.outcomes.append(_cpu(bench, plan, name))
        bench.fresh(link_delay_ms=LINK_DELAY_MS)
        where = f"round trip {2 * LINK_DELAY_MS} ms"
        report.outcomes.append(_latency(bench, plan, where))
        with tempfile.TemporaryDirectory() as folder:
            bench.fresh(data_dir=str(Path(folder) / "data"))
            report.outcomes.append(_latency(bench, plan, "disk that syncs"))
            bench.host.ask("drop")
    finally:
        bench.close()
    return report


def counted(bench: Bench, plan: Plan, name: str) -> Outcome:
    """Turns, messages and syncs of one and the other: their largest difference."""
    size, burst = BURSTS[name]
    found = {}
    for idempotent in (False, True):
        bench.fresh(**STILL)
        bench.round(size, 2 * burst, idempotent=idempotent, lockstep=burst)
        found[idempotent] = bench.round(size, plan.counted, idempotent=idempotent, lockstep=burst)
    plain, idem = ({name: found[kind][name] for name in COUNTED} for kind in (False, True))
    note = ", ".join(f"{plain[each]} and {idem[each]} {each}" for each in COUNTED)
    difference = max(abs(plain[each] - idem[each]) for each in COUNTED)
    details = {"plain": plain, "idempotent": idem, "requests": plan.counted}
    return Outcome(f"counts differ by, {name}", difference, "", 0, note=note, details=details)


def _sides(measure: Callable[..., dict[str, float]]) -> dict[str, Callable[[], dict[str, float]]]:
    return {
        "plain": partial(measure, idempotent=False),
        "idempotent": partial(measure, idempotent=True),
    }


def _cpu(bench: Bench, plan: Plan, name: str) -> Outcome:
    size, target = CPU_TARGETS[name]
    measure = partial(bench.fresh_round, size, plan.cpu.count(size))
    rounds = interleave(plan.cpu.rounds, _sides(measure))
    plain, idem = rounds["plain"], rounds["idempotent"]
    note = f"{middle(idem, 'cpu_us'):.1f} and {middle(plain, 'cpu_us'):.1f} us a request"
    found = ratio(idem, plain, "cpu_us")
    return Outcome(
        f"CPU, idempotent over plain, {name}", found, "x", target, note=note, details=rounds
    )


def _latency(bench: Bench, plan: Plan, where: str) -> Outcome:
    for idempotent in (False, True):
        bench.round(1_000, plan.latency, idempotent=idempotent, in_flight=1)
    measure = partial(bench.round, 1_000, plan.latency, in_flight=1)
    rounds = interleave(plan.latency_rounds, _sides(measure))
    plain, idem = rounds["plain"], rounds["idempotent"]
    note = f"p50 {middle(idem, 'p50_ms'):.3f} and {middle(plain, 'p50_ms'):.3f} ms"
    found = ratio(idem, plain, "p50_ms")
    return Outcome(
        f"latency, idempotent over plain, {where}",
        found,
        "x",
        LATENCY_TARGET,
        note=note,
        details=rounds,
    )
