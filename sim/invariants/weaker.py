"""What was lost or stored twice, and is no anomaly.

First, where less was promised. With acks of 0 and 1 an acknowledged record may be lost, and a
producer that the log has forgotten may store a record again. That is no fault, but the verdict of
such a run says so: weakened (SIM-WEAKENED; sim-S19, sim-S57).

Second, where clients break the promise by rules of their own. librdkafka begins a new epoch after a
gap (librdkafka #4953). And a client with more than five batches in flight may be refused what is
stored. In a plain sweep a few seeds in a hundred do that, so such a run is good, and notes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.sim.invariants.findings import ACKS_ALL, Anomaly
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.losses import Losses, losses
from ottla.sim.invariants.resent import Cause, copies

_OF_NO_SYNC = frozenset({"sim-I24"})
"""What may always follow if nothing waits for a sync (flush policy *off*)."""
_OF_LOST_APPENDS = frozenset(
    f"sim-I{number:02d}"
    for number in (*range(1, 9), 11, 12, 14, 16, 17, *range(19, 24), 25, 27, 28, 34, 36, 37)
)
"""What else may follow once a crash took what was not synced."""
_REASONS = 2
"""How many causes of losses are named, those with the most losses first."""


def weaker(index: Index) -> Iterator[str]:
    """What less than the full promise led to in a run, a sentence for each kind."""
    if any(row.acks != ACKS_ALL for row in index.rows["ok"]):
        for row in losses(index):
            if row.acks != ACKS_ALL and row.lost:
                yield _lost(row)
    if not index.rows["expire"]:
        return  # no producer was forgotten, so no copies are looked for
    yield from _twice(index, Cause.EXPIRED)


def unsynced(index: Index, anomalies: Iterable[Anomaly]) -> tuple[list[str], list[Anomaly]]:
    """If nothing waits for a sync: which of these anomalies follow from that, a sentence each, and
    those that do not."""
    excused = _OF_NO_SYNC
    if any(row.aux for row in index.rows["crash"]):
        excused |= _OF_LOST_APPENDS
    told, left = list[str](), list[Anomaly]()
    for each in anomalies:
        if each.invariant in excused:
            told.append(f"nothing waits for a sync, so {each}")
        else:
            left.append(each)
    return told, left


def noted(index: Index) -> Iterator[str]:
    """What clients did by their own rules against the promise, a sentence for each rule."""
    if any(len(places) > 1 for places in index.places.values()):
        yield from _twice(index, Cause.DRAINED, Cause.WINDOW)


def _twice(index: Index, *causes: Cause) -> Iterator[str]:
    found = list(copies(index))
    for cause in causes:
        twice = [each for each in found if each.cause is cause]
        if twice:
            many = "a record is" if len(twice) == 1 else f"{len(twice)} records are"
            first = twice[0]
            yield (
                f"{many} stored again, {cause.value}: the first at offsets {first.before} and "
                f"{first.off} of partition {first.partition}"
            )


def _lost(row: Losses) -> str:
    most = sorted(row.explained, key=lambda each: (-each[1], each[0]))
    told = [f"{count}: {what}" for what, count in most[:_REASONS]]
    rest = sum(count for _, count in most[_REASONS:])
    if rest:
        told.append(f"{rest}: otherwise")
    return (
        f"{row.lost} of {row.acknowledged} records acknowledged with acks={row.acks} are lost "
        f"({'; '.join(told)})"
    )
