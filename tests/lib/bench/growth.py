"""How cost grows with size: partitions of a topic, and producers in a snapshot.

Partitions, with three replicas each, are created, left idle, deleted, and found on disk by a
cluster that is started again. Each is measured at sizes that are far apart. If the cost is linear,
each partition costs the same at all sizes. For snapshots, the longest turn is measured, because it
blocks all others: CPU time of the thread, with the garbage collector on, as in a broker.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bench.measure import Outcome, Report
from bench.pipe import Child
from bench.restarting import shared_memory
from broker_core_partition import PartitionDriver, make_partition
from ottla.log.types import BatchIdentity

LONGEST_TURN_MS = 50


@dataclass(slots=True)
class Plan:
    """Sizes, in rising order; how long idleness is watched, in seconds."""

    partitions: tuple[int, ...]
    producers: tuple[int, ...]
    idle: float


FULL = Plan((100, 300, 1_000), (1_000, 10_000, 100_000, 200_000), 8.0)
QUICK = Plan((10, 30), (100, 1_000), 0.2)


def run(plan: Plan) -> Report:
    """All curves."""
    return Report("growth", [*_partitions(plan), *_producers(plan.producers)])


def _partitions(plan: Plan) -> Iterator[Outcome]:
    def told(what: str, size: int, spent: float) -> Outcome:
        each = f"{spent / size * 1e6:,.0f} us each"
        return Outcome(f"{size} partitions {what}", spent * 1e3, "ms of CPU", note=each)

    with Child("bench.host") as host:
        host.ask("partitions", count=plan.partitions[0])  # the first of a process is no measure
        for size in plan.partitions:
            before = host.ask("counts")["cpu"]
            host.ask("partitions", count=size)
            yield told("created", size, host.ask("counts")["cpu"] - before)
            share = host.ask("idle", seconds=plan.idle)["share"]
            yield told("idle for a second", size, share)
            yield told("deleted", size, host.ask("deleted")["cpu"])
            with tempfile.TemporaryDirectory(dir=shared_memory()) as folder:
                spent = host.ask("restarted", count=size, folder=folder)["cpu"]
                yield told("started again from disk", size, spent)
                host.ask("drop")


def _producers(sizes: tuple[int, ...]) -> Iterator[Outcome]:
    for size in sizes:
        driver = _with_producers(size)
        driver.delete_records(-1)
        yield _outcome(f"snapshot of {size} producers", _turns(driver, driver.settle))
        compaction = driver.compactions[-1]
        turns = _turns(driver, partial(driver.restore, compaction))
        yield _outcome(f"snapshot of {size} installed", turns)


def _with_producers(size: int) -> PartitionDriver:
    """A leader that remembers so many, each with a full window."""
    driver = PartitionDriver(make_partition(max_producers=2 * size))
    driver.serve()
    driver.produce()
    driver.settle()
    table, index = driver.machine.table, 0
    for sequence in range(5):
        for producer in range(size):
            index += 1
            who = BatchIdentity(producer, 0, sequence, sequence)
            table.apply(who, index, 1_700_000_000_000, index=index, term=1)
    return driver


def _turns(driver: PartitionDriver, first: Callable[[], object]) -> list[float]:
    """CPU seconds of each turn until the snapshot is done."""
    turns = [_cpu(first)]
    while driver.machine.snapshots.busy:
        turns.append(_cpu(partial(driver.sleep, 0)))
    if driver.machine.outbox.compaction is not None:
        driver.compactions.append(driver.machine.outbox.compaction)
        driver.machine.outbox.compaction = None
    return turns


def _cpu(call: Callable[[], object]) -> float:
    start = time.thread_time()
    call()
    return time.thread_time() - start


def _outcome(name: str, turns: list[float]) -> Outcome:
    note = f"{sum(turns) * 1e3:,.0f} ms in {len(turns)} turns"
    return Outcome(f"longest turn, {name}", max(turns) * 1e3, "ms", LONGEST_TURN_MS, note=note)
