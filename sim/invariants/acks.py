"""At the end: what clients were told, compared with the canonical log.

Only acks=all promises anything. What acks=1 and acks=0 lose is counted in `losses.py`, not judged.
An unknown outcome (`info`) promises nothing: the record may be there or not.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.findings import ACKS_ALL, Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.mutants import CheckerMutant

_ENDINGS = ("ok", "fail", "info")


def lost(index: Index) -> Iterator[Anomaly]:
    """sim-I01. Not judged if the run ended before its logs were read."""
    for row, given in () if index.cut_short else index.acked:
        key = (row.partition, given.value)
        if key not in index.places and not index.erased(row):
            text = f"op {row.op} with value {given.value} was acknowledged at offset {row.off} of "
            text += f"partition {row.partition}, and is not in its log"
            yield Anomaly("sim-I01", row.eid, text)


def moved(index: Index) -> Iterator[Anomaly]:
    """sim-I06."""
    for row, given in index.acked:
        places = index.places.get((row.partition, given.value))
        if not places or row.off is None or row.off < 0:
            continue
        if index.deleted(row.partition, row.off):
            continue  # another copy of the record is in the log
        found = index.at(row.partition, row.off)
        if found is None or found.value != given.value:
            text = f"op {row.op} was acknowledged at offset {row.off} of partition "
            text += f"{row.partition}, its value {given.value} is at {places}"
            yield Anomaly("sim-I06", row.eid, text)


def shared(index: Index) -> Iterator[Anomaly]:
    """sim-I07."""
    owners: dict[tuple[int, int], int] = {}
    places: dict[int, int] = {}
    for row, _ in index.acked:
        if row.off is None or row.off < 0:
            continue
        owner = owners.setdefault((row.partition, row.off), row.op)
        if owner != row.op:
            text = f"ops {owner} and {row.op} were both acknowledged at offset {row.off} of "
            yield Anomaly("sim-I07", row.eid, f"{text}partition {row.partition}")
        place = places.setdefault(row.op, row.off)
        if place != row.off:
            text = f"op {row.op} was acknowledged at offset {place} and at {row.off} of partition "
            yield Anomaly("sim-I07", row.eid, f"{text}{row.partition}")


def late(index: Index) -> Iterator[Anomaly]:
    """sim-I08: offsets are the order, so an offset must be above all that were acknowledged
    before."""
    highest: dict[int, int] = {}
    floors: dict[int, int] = {}
    calls = sorted([*index.rows["inv"], *index.rows["ok"]], key=_eid)
    for row in calls:
        if row.kind == "inv":
            floors[row.op] = highest.get(row.partition, -1)
        elif row.acks == ACKS_ALL and row.off is not None and row.off >= 0:
            floor = floors.get(row.op, -1)
            if row.off <= floor:
                text = f"op {row.op} was handed over after offset {floor} of partition "
                text += f"{row.partition} was acknowledged, and got offset {row.off}"
                yield Anomaly("sim-I08", row.eid, text)
            highest[row.partition] = max(row.off, highest.get(row.partition, -1))


def failed(index: Index) -> Iterator[Anomaly]:
    """sim-I13."""
    definite = list(index.rows["fail"])
    if CheckerMutant.INFO_IS_FAIL in index.mutants:
        definite += index.rows["info"]
    read = {(row.partition, row.value): row.off for row in index.rows["poll"]}
    for row in definite:
        given = index.invoked.get(row.op)
        if given is None:
            continue
        key = (row.partition, given.value)
        off = index.places[key][0] if key in index.places else read.get(key)
        if off is not None:
            text = f"op {row.op} certainly failed ({row.code}), and its value {given.value} is at "
            text += f"offset {off} of partition {row.partition}"
            yield Anomaly("sim-I13", row.eid, text)


def ended_twice(index: Index) -> Iterator[Anomaly]:
    """sim-I32; `numbers.py` computes the share that was acknowledged."""
    ends: dict[int, str] = {}
    rows = [row for kind in _ENDINGS for row in index.rows[kind]]
    for row in sorted(rows, key=_eid):
        if row.op not in index.invoked:
            text = f"op {row.op} ended as {row.kind}, but was handed to nobody"
            yield Anomaly("sim-I32", row.eid, text)
        elif row.op in ends:
            text = f"op {row.op} ended as {row.kind}, after it had ended as {ends[row.op]}"
            yield Anomaly("sim-I32", row.eid, text)
        ends[row.op] = row.kind


def _eid(row: Row) -> int:
    return int(row.eid)
