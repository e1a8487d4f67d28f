"""Which rows of a history a transcript shows, and how: one line each.

Only rows of the topic's partitions are shown. A script may `watch` more kinds than the usual ones.
Times and hashes are left out: they would change with every microsecond of delay, and mean nothing
to a reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ottla.broker.node.inspection import ReplicaView
from ottla.log.records import records_of
from ottla.log.types import RecordBatch
from ottla.sim.history.history import Event
from ottla.sim.invariants.findings import ACKS_ALL, Anomaly
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.judge import Verdict
from ottla.sim.invariants.registry import said_of
from ottla.sim.plugins.own import PREFIX
from ottla.sim.scenarios.script_clients import Names
from ottla.sim.world.batch import value_of
from ottla.sim.world.world import World

PLAIN = ("leader", "stepdown", "append", "truncate", "commit", "crash", "start", "snapshot")
LONG = 20
"""Of a log with more records than this only the first and the last are shown."""
_HASH = re.compile(r"-?\d{12,}")
_ROW = re.compile(r" \(row \d+\)")


def tell(row: Any, names: Names) -> str | None:
    """A row in words; None: it is not shown."""
    if row.partition is None or row.partition < 0:
        return None
    where = "" if row.partition == 0 else f" of partition {row.partition}"
    said = _SAID[row.kind](row, names)
    return None if said is None else f"{row.node}: {said}{where}"


def _append(row: Any, names: Names) -> str | None:
    if row.off is None or not row.aux:
        return None
    return f"appends {names.batch(row.pid, row.epoch, row.seq)} at {row.off} in term {row.term}"


def _commit(row: Any, _: Names) -> str | None:
    return f"high watermark {row.hw}" if row.aux and row.hw else None


def _crash(row: Any, _: Names) -> str:
    lost = f", {row.aux} appends are lost" if row.aux else ""
    return f"is down ({row.code}){lost}"


def _snapshot(row: Any, _: Names) -> str:
    return f"has a snapshot {row.code}, its log begins at {row.off}"


def _vote(row: Any, _: Names) -> str | None:
    if row.cand == row.node:
        return None
    verb = "gives" if row.aux else "writes"
    return f"{verb} its vote for {row.cand} in term {row.term}"


def _durable(row: Any, _: Names) -> str:
    return f"has all below {row.off} on its disk"


_SAID: dict[str, Callable[[Any, Names], str | None]] = {
    "leader": lambda row, _: f"leads term {row.term}",
    "stepdown": lambda row, _: f"no longer leads term {row.term}",
    "append": _append,
    "truncate": lambda row, _: f"cuts its log from {row.off} on",
    "commit": _commit,
    "crash": _crash,
    "start": lambda row, _: f"is up, in term {row.term}",
    "snapshot": _snapshot,
    "vote": _vote,
    "durable": _durable,
    "expire": lambda row, _: f"forgets producer {row.pid}",
}
KINDS = tuple(_SAID)


def logs(world: World, names: Names, partition: int = 0) -> Iterator[str]:
    """A line for each node: role, term, high watermark, and its log as `offset record/term`; or
    that it is down, or has no replica (yet)."""
    replicas = world.replicas(partition)
    for node in world.nodes:
        if node in replicas:
            yield f"{node}: {_log(world, names, node, replicas[node])}"
        else:
            yield f"{node}: {'no replica' if node in world.lives else 'down'}"


def _log(world: World, names: Names, node: int, replica: ReplicaView) -> str:
    made, life = replica.of_partition(), world.lives[node]
    held = []
    for entry in life.store.scan(replica.group):
        if isinstance(entry.payload, RecordBatch):
            for record in records_of(entry.payload):
                name = names.name(value_of(record.value or b""))
                held.append(f"{record.offset} {name}/{entry.term}")
    frozen = "frozen, " if life.frozen else ""
    role = f"{frozen}{replica.role.value} in term {replica.term}"
    bounds = f"high watermark {made.high_watermark}"
    if made.log_start_offset:
        bounds = f"log start {made.log_start_offset}, {bounds}"
    if len(held) > LONG:
        held[3:-3] = ["..."]
    return f"{role}, {bounds}: {', '.join(held) or 'empty'}"


def tables(world: World, partition: int = 0) -> Iterator[str]:
    """Each living node's producer table: windows as `first-last@offset`, `+` before what is in
    flight."""
    for node, replica in sorted(world.replicas(partition).items()):
        described = replica.of_partition().describe_producers()
        shown = "; ".join(_producer(pid, known) for pid, known in described.items())
        yield f"{node}: {shown or 'nobody'}"


def _producer(pid: int | str, known: dict[str, Any]) -> str:
    epoch = "new" if known["epoch"] is None else f"epoch {known['epoch']}"
    window = [f"{first}-{last}@{at}" for first, last, at, _ in known["finished"]]
    window += [f"+{each['first']}-{each['last']}/{each['epoch']}" for each in known["in_flight"]]
    return " ".join([str(pid), epoch, *window])


def verdict(
    rows: Sequence[Event],
    judged: Verdict,
    left: Sequence[Anomaly],
    weakened: Sequence[str],
    names: Names,
) -> Iterator[str]:
    """The canonical log, what of it is lost and what is in it twice; what is explained by faults
    that no Raft survives, or by lesser promises; and every other invariant that does not hold."""
    for partition, log in sorted(Index(rows).canon.items()):
        where = f" of partition {partition}" if partition else ""
        held = ", ".join(f"{row.off} {names.name(row.value)}/{row.term}" for row in log)
        yield f"the log{where} in the end: {held}"
    for loss in judged.losses:
        if loss.lost and loss.acks == ACKS_ALL:
            yield f"of {loss.acknowledged} acknowledged with acks=all lost: {loss.lost}"
    for copy in judged.duplicates:
        yield f"{names.name(copy.value)} is there twice: {copy.cause.value}"
    yield from (f"weakened: {_ROW.sub('', each)}" for each in weakened)
    yield from (found(each) for each in left)
    if not left and not weakened:
        yield "no invariant is broken"


def found(anomaly: Anomaly) -> str:
    """An anomaly in one line, without hashes."""
    text = _HASH.sub("...", anomaly.text.splitlines()[0])
    if anomaly.invariant.startswith(PREFIX):
        return f"{anomaly.invariant}: {text}"
    name, _ = said_of(anomaly.invariant)
    return f"{anomaly.invariant}, {name}: {text}"
