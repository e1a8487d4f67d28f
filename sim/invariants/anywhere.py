"""What may follow where an unknown producer may begin with any sequence.

Then the first batch of a producer can be refused or lost, and a later one be stored as its first
(decision 0012; KAFKA-14312; KAFKA-15591). The first one is a gap from then on. Its client stores it
again in a new epoch, behind the later ones; or it takes their success for that of the first one,
which is lost. All profiles but *reference-strict* and the oldest ones promise no more than that, so
such a run is weakened.

An anomaly is explained only if the partition's log shows it: the first batch that it took from this
producer is not the first one that the client sent there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.broker.profiles.profile import Profile
from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index

LATER = "an unknown producer began with a later batch than its first"
_FOLLOWS = frozenset({"sim-I01", "sim-I03", "sim-I34"})


def begun_later(
    profile: Profile, index: Index, anomalies: Iterable[Anomaly]
) -> tuple[list[str], list[Anomaly]]:
    """Which of these anomalies follow from that, a sentence each, and those that do not."""
    told, left = list[str](), list(anomalies)
    if not profile.rulebook.begins_anywhere or all(each.invariant not in _FOLLOWS for each in left):
        return told, left
    late = _begun_later(index)
    by_eid = {row.eid: row for rows in index.rows.values() for row in rows}
    anomalies, left = left, []
    for each in anomalies:
        whose = _producers(index, by_eid[each.eid]) if each.invariant in _FOLLOWS else ()
        if late.isdisjoint(whose):
            left.append(each)
        else:
            told.append(f"{LATER}, so {each}")
    return told, left


def _producers(index: Index, row: Row) -> Iterator[tuple[int, int]]:
    """Partition and id of each producer that stored the record of this row, or asked for it."""
    yield row.partition, row.pid
    for off in index.places.get((row.partition, row.value), ()):
        copy = index.at(row.partition, off)
        if copy is not None:
            yield row.partition, copy.pid


def _begun_later(index: Index) -> set[tuple[int, int]]:
    """Partition and id of each producer that began there with another batch than its first."""
    opened: dict[tuple[int, int, int], int] = {}
    for row in index.rows["send"]:
        opened.setdefault((row.partition, row.pid, row.epoch), row.seq)
    first: dict[tuple[int, int], Row] = {}
    for row in index.rows["apply"]:
        known = first.get((row.partition, row.pid))
        if row.pid is not None and (known is None or row.log_index < known.log_index):
            first[row.partition, row.pid] = row
    return {
        whose for whose, row in first.items() if row.seq != opened.get((*whose, row.epoch), row.seq)
    }
