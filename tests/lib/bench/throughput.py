"""Requests per second of one connection with 5 in flight, beside the null server's.

Three replicas in one process, memory store, acks=all. Every round has a cluster of its own, so the
bytes it keeps are bounded by one round.

A store needs memory for what it keeps, and fresh memory costs time: on a virtual machine, its first
touch may cost more than receiving into it (1 ms for 1 MB was seen). The targets are measured under
a user's conditions. For information, a process is measured whose allocator keeps freed memory, so
that rounds after the first use memory that has been touched.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.host import TOPIC
from bench.measure import Outcome, Report, interleave, middle, ratio
from bench.pipe import Child

TARGET = 0.5
ROUND_BYTES = 150 << 20
RECYCLING = {"MALLOC_MMAP_THRESHOLD_": "2000000000", "MALLOC_TRIM_THRESHOLD_": "2000000000"}
"""glibc: take everything from the heap, give nothing back."""
PATIENT = {"election_timeout_ms": 10_000}
"""A machine that stalls for half a second must not hold an election in the middle of a round."""
SIZES = {"1 KB": 1_000, "100 KB": 100_000, "1 MB": 1_000_000}


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    requests: int
    """Most requests of a round; fewer where they are large."""

    def count(self, size: int) -> int:
        """Requests of one round."""
        return max(10, min(self.requests, ROUND_BYTES // size))


FULL = Plan(rounds=7, requests=20_000)
QUICK = Plan(rounds=2, requests=400)


class Bench:
    """The processes that take part."""

    def __init__(self, *, mock: bool):
        self.load = Child("bench.load")
        self.ottla = Child("bench.host")
        self.recycling = Child("bench.host", environment=RECYCLING)
        self.null = Child("bench.host")
        self.null_address = self.null.ask("null")["address"]
        found = mock and importlib.util.find_spec("confluent_kafka") is not None
        self.mock = Child("bench.mock", TOPIC) if found else None

    def close(self) -> None:
        """End them."""
        for child in (self.load, self.ottla, self.recycling, self.null, self.mock):
            if child is not None:
                child.close()

    def against(self, child: Child, address: object, size: int, count: int) -> dict[str, float]:
        """One round; also fails if an answer is missing or carries an error."""
        send = partial(self.load.ask, "run", address=address, topic=TOPIC, size=size)
        send(count=max(5, count // 10))
        before = child.ask("counts")
        found = send(count=count)
        after = child.ask("counts")
        return {
            "rate": count / found["seconds"],
            "cpu_us": (after["cpu"] - before["cpu"]) / count * 1e6,
            "p50_ms": found["p50"] * 1e3,
            "p99_ms": found["p99"] * 1e3,
            "client_us": found["cpu"] / count * 1e6,
        }

    def fresh(self, host: Child, size: int, count: int) -> dict[str, float]:
        """One round against a fresh cluster."""
        address = host.ask("fresh", **PATIENT)["address"]
        return self.against(host, address, size, count)

    def profiled(self, size: int, count: int) -> str:
        """Where the time of such a round goes."""
        address = self.ottla.ask("fresh")["address"]
        self.ottla.ask("profile", on=True)
        self.load.ask("run", address=address, topic=TOPIC, size=size, count=count)
        return str(self.ottla.ask("profile", on=False)["text"])


def run_null(plan: Plan) -> Report:
    """The ceiling by itself, and librdkafka's mock beside it."""
    report = Report("null", [])
    bench = Bench(mock=True)
    try:
        for name, size in SIZES.items():
            count = plan.count(size)
            sides: dict[str, Callable[[], dict[str, float]]] = {
                "null": partial(bench.against, bench.null, bench.null_address, size, count)
            }
            if bench.mock is not None:
                address = bench.mock.hello["address"]
                sides["mock"] = partial(bench.against, bench.mock, address, size, count)
            for side, rounds in interleave(plan.rounds, sides).items():
                note = f"{middle(rounds, 'cpu_us'):.1f} us CPU a request"
                rate = middle(rounds, "rate")
                details = {"rounds": rounds}
                report.outcomes.append(
                    Outcome(f"{side} server, {name}", rate, "req/s", note=note, details=details)
                )
    finally:
        bench.close()
    return report


def run_produce(plan: Plan) -> Report:
    """Ottla over null, per size."""
    report = Report("produce", [])
    bench = Bench(mock=False)
    try:
        for name, size in SIZES.items():
            _produce(bench, plan, report, name=name, size=size)
    finally:
        bench.close()
    return report


def _produce(bench: Bench, plan: Plan, report: Report, *, name: str, size: int) -> None:
    count = plan.count(size)
    rounds = interleave(
        plan.rounds,
        {
            "null": partial(bench.against, bench.null, bench.null_address, size, count),
            "ottla": partial(bench.fresh, bench.ottla, size, count),
            "recycling": partial(bench.fresh, bench.recycling, size, count),
        },
    )
    outcome = _over_null(rounds, "ottla", name)
    outcome.target, outcome.details = TARGET, dict(rounds)
    report.outcomes += [outcome, _over_null(rounds, "recycling", f"{name}, recycled memory")]
    if not outcome.met:
        report.profiles[outcome.name] = bench.profiled(size, count)


def _over_null(rounds: dict[str, list[dict[str, float]]], side: str, name: str) -> Outcome:
    ottla, null = rounds[side], rounds["null"]
    note = (
        f"{middle(ottla, 'rate'):,.0f} of {middle(null, 'rate'):,.0f} req/s; "
        f"CPU {middle(ottla, 'cpu_us'):.1f} and {middle(null, 'cpu_us'):.1f} us; "
        f"p50 {middle(ottla, 'p50_ms'):.2f} ms"
    )
    found = ratio(ottla, null, "rate")
    return Outcome(f"produce over null, {name}", found, "x", at_least=True, note=note)
