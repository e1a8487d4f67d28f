"""Experiment `acks`: the loss table (promise-A1).

Lost has one meaning: the client was told success (with acks=0: told nothing else), and no consumer
can ever read the record (promise-K4). What took it is found in the history, record by record
(`sim/invariants/losses.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from ottla.sim.experiments.failures import FAILURES, NOTHING, Failure
from ottla.sim.experiments.model import (
    Chart,
    Column,
    Experiment,
    Figures,
    Key,
    Line,
    Measured,
    Report,
    Series,
    Variant,
    total,
)
from ottla.sim.history.history import Event
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.losses import NEVER_ARRIVED, UNDECIDED, UNEXPLAINED, losses
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.bounds import bounded

BASE = RunConfig(
    profile="reference-strict",
    client_model="java",
    producers=1,
    consumers=0,
    arrivals="random",
    records=500,
    load_ms=10_000,
    batch_records=4,
    sync_us=40_000,
    sync_jitter_us=10_000,
    replica_lag_ms=500,
    delivery_timeout_ms=1_500,
    request_timeout_ms=1_000,
)

TOOK = {
    "truncate": "above the high watermark of a leader that was replaced, whose log was cut",
    "crash": "not synced when the node went down",
    "refused": "refused, which nobody hears",
    NEVER_ARRIVED: "sent to nobody, or into a connection that was gone",
    UNDECIDED: "in a log, not committed",
    UNEXPLAINED: "UNEXPLAINED",
}
"""What takes an acknowledged record, in words."""
_TOO_FEW = ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")


class Promise(NamedTuple):
    """What a producer asks for; the minimum counts with acks=all (-1) only."""

    acks: int
    minimum: int

    def told(self) -> str:
        """In words."""
        return f"all, minimum {self.minimum}" if self.acks == -1 else str(self.acks)


PROMISES = (Promise(0, 1), Promise(1, 1), Promise(-1, 1), Promise(-1, 2), Promise(-1, 3))
PUBLISHED = {
    Promise(0, 1): "loses",
    Promise(1, 1): "loses what is above the high watermark",
    Promise(-1, 1): "loses if only the leader was in sync",
    Promise(-1, 2): "loses nothing",
    Promise(-1, 3): "loses nothing",
}
_SPARED = {
    Promise(-1, 1): "Nothing is lost: a majority has it on its disks, whatever the minimum.",
}
"""Where nothing is lost that the publication loses."""
FLUSHES = ("each-turn", "off")


def _key(promise: Promise, failure: Failure, flush: str) -> Key:
    return (*promise, failure.name, flush)


def _variant(promise: Promise, failure: Failure, flush: str) -> Variant:
    config = BASE.with_(
        acks=promise.acks,
        min_insync=promise.minimum,
        idempotent=promise.acks == -1,
        flush=flush,
    )
    return Variant(_key(promise, failure, flush), config, failure.plan)


def measure(rows: Sequence[Event], _config: RunConfig) -> Figures:
    """Counts of records: handed over, acknowledged, lost, and lost to each thing that takes them;
    and how many answers said that too few replicas are in sync."""
    index = Index(rows)
    found = losses(index)
    figures = {
        "handed": float(len(index.rows["inv"])),
        "acknowledged": float(sum(each.acknowledged for each in found)),
        "lost": float(sum(each.lost for each in found)),
        "too few": float(sum(row.code in _TOO_FEW for row in index.rows["error"])),
        **dict.fromkeys(TOOK, 0.0),
    }
    for told, count in (pair for each in found for pair in each.explained):
        taker = next(each for each in TOOK if told.startswith(each))
        figures[taker] += count
    return figures


def report(measured: Measured) -> Report:
    """The table: a line for each promise and failure, both flush policies side by side."""
    columns = (
        Column("acks", number=False),
        Column("what happens", number=False),
        Column("acknowledged"),
        Column("lost, synced each turn"),
        Column("lost, never waiting for a sync"),
        Column("answers 19 and 20"),
        Column("published", number=False),
    )
    lines = tuple(_line(measured, *each) for each in product(PROMISES, FAILURES))
    return Report(columns, lines, (_chart(measured),), tuple(_findings(measured)))


def _line(measured: Measured, promise: Promise, failure: Failure) -> Line:
    synced, unsynced = (measured[_key(promise, failure, flush)] for flush in FLUSHES)
    handed, acknowledged = total(synced, "handed"), total(synced, "acknowledged")
    cells = (
        promise.told(),
        failure.name,
        f"{acknowledged / handed:.0%}",
        f"{total(synced, 'lost'):.0f}",
        f"{total(unsynced, 'lost'):.0f}",
        f"{total(synced, 'too few'):.0f}",
        PUBLISHED[promise],
    )
    return Line(cells, _reason(promise, failure, synced, unsynced))


def _reason(
    promise: Promise, failure: Failure, synced: Sequence[Figures], unsynced: Sequence[Figures]
) -> str:
    spared = failure.spared if promise.acks != -1 else _SPARED.get(promise, NOTHING)
    told = [_taken(synced) or _rare(spared, len(synced))]
    if total(unsynced, "crash") > total(synced, "crash"):
        told.append(f"Without waiting for syncs: {_taken(unsynced)}")
    if promise.acks == -1 and total(synced, "too few"):
        told.append("While fewer are in sync than the minimum, nothing is taken.")
    return " ".join(told)


def _rare(spared: str, seeds: int) -> str:
    """That nothing is lost, with how rare it may be that something is."""
    few = NOTHING.removesuffix(".")
    return spared.replace(few, f"{few} ({bounded(seeds)} seeds lose any)", 1)


def _taken(figures: Sequence[Figures]) -> str:
    parts = [f"{total(figures, each):.0f} {told}" for each, told in TOOK.items()]
    parts = [each for each in parts if not each.startswith("0 ")]
    return f"{'; '.join(parts)}." if parts else ""


def _lost(measured: Measured, promise: Promise, flush: str) -> float:
    return sum(total(measured[_key(promise, each, flush)], "lost") for each in FAILURES)


def _chart(measured: Measured) -> Chart:
    def bars(flush: str, name: str) -> Series:
        lost = (_lost(measured, promise, flush) for promise in PROMISES)
        return Series(name, tuple((float(at), count) for at, count in enumerate(lost)))

    names = tuple(f"acks={promise.told()}" for promise in PROMISES)
    series = (bars("each-turn", "synced each turn"), bars("off", "never waiting for a sync"))
    return Chart("Acknowledged records that are lost", "acks", "records", series, names)


def _findings(measured: Measured) -> Iterator[str]:
    everything = [figures for each in measured.values() for figures in each]
    lost, unexplained = total(everything, "lost"), total(everything, UNEXPLAINED)
    yield f"{lost:,.0f} acknowledged records are lost, {unexplained:.0f} without an explanation."
    every = [_lost(measured, each, "each-turn") for each in PROMISES if each.acks == -1]
    seeds = min(len(each) for each in measured.values())
    rare = "" if sum(every) else f" (in none of {seeds} seeds: {bounded(seeds)} seeds lose any)"
    yield (
        f"acks=all loses {sum(every):.0f} where logs are synced{rare}, whatever the minimum: on "
        "Raft a majority stands behind each acknowledgement. Kafka's own rows with minimum 1, "
        "where the leader may be the only one in sync, need a profile that follows Kafka's "
        "replication."
    )
    shares = [_acknowledged(measured, each) for each in PROMISES if each.acks == -1]
    yield (
        "The minimum costs availability: with 1, 2 and 3 in sync asked for, "
        f"{', '.join(f'{share:.0%}' for share in shares)} of the records are acknowledged."
    )
    yield (
        "Where nobody waits for a sync, acks=all loses what a failure takes from a majority's "
        f"memory: {_off_by_failure(measured)}."
    )


def _off_by_failure(measured: Measured) -> str:
    """What acks=all loses without syncs, by the failures in which it loses anything."""
    lost = {
        failure.name: sum(
            total(measured[_key(each, failure, "off")], "lost")
            for each in PROMISES
            if each.acks == -1
        )
        for failure in FAILURES
    }
    told = [f"{number:.0f} where {name}" for name, number in lost.items() if number]
    seeds = min(len(each) for each in measured.values())
    return ", ".join(told) or f"nothing in {seeds} seeds, {bounded(seeds)} seeds lose any"


def _acknowledged(measured: Measured, promise: Promise) -> float:
    figures = [
        each for failure in FAILURES for each in measured[_key(promise, failure, "each-turn")]
    ]
    return total(figures, "acknowledged") / total(figures, "handed")


EXPERIMENT = Experiment(
    name="acks",
    title="What acknowledgements are worth",
    question="How many acknowledged records can no consumer ever read, by what the producer asks "
    "for and by what goes wrong?",
    published="Kafka Acks Configuration, an Apology: in words, for Kafka with three replicas.",
    conditions=(
        ("cluster", "three nodes, three replicas, 0.4 ms between nodes, 50 ms for a sync"),
        ("in sync", "caught up within the last 0.5 s"),
        ("producer", "one, 50 records per second, at most 4 in a request; gives up after 1.5 s"),
        ("what happens", "twice in a run, at random moments; a node is away for 2 s"),
        ("profile", "reference-strict; membership does not change"),
    ),
    variants=tuple(_variant(*each) for each in product(PROMISES, FAILURES, FLUSHES)),
    measure=measure,
    report=report,
    seeds=2,
)
