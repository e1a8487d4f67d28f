"""1,000 partitions of three replicas: how long they take to serve, what they cost at rest."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure import Outcome, Report
from bench.pipe import Child


@dataclass(slots=True)
class Plan:
    """How many partitions; how long their idleness is watched, in seconds."""

    partitions: int
    idle: float


FULL = Plan(1_000, 8.0)
QUICK = Plan(100, 1.0)


def run(plan: Plan) -> Report:
    """Create them, then do nothing."""
    with Child("bench.host") as host:
        seconds = host.ask("partitions", count=plan.partitions)["seconds"]
        memory = host.ask("memory")["mib"]
        share = host.ask("idle", seconds=plan.idle)["share"]
        report = Report(
            "partitions",
            [
                Outcome(f"{plan.partitions} x 3 replicas created", seconds, "s", 3),
                Outcome("idle CPU with them", share * 100, "% of a core", 5),
                Outcome("memory with them", memory, "MiB"),
            ],
        )
        if not all(each.met in (True, None) for each in report.outcomes):
            host.ask("profile", on=True)
            host.ask("partitions", count=plan.partitions)
            report.profiles["creation"] = host.ask("profile", on=False)["text"]
            host.ask("profile", on=True)
            host.ask("idle", seconds=plan.idle)
            report.profiles["idle"] = host.ask("profile", on=False)["text"]
    return report
