"""At the end: what consumers got, compared with the canonical log.

A consumer is a `client`, row by row; it asks for offsets one after the other. A consumer that
starts again is another client. So if one goes back or skips offsets, the broker caused it, unless
the log start passed it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index


def phantoms(index: Index) -> Iterator[Anomaly]:
    """sim-I11. Not judged if the run ended before its logs were read."""
    if not index.cut_short:
        yield from _not_there(index)
        yield from _from_nobody(index)


def _not_there(index: Index) -> Iterator[Anomaly]:
    for row in index.rows["poll"]:
        if index.deleted(row.partition, row.off):
            continue
        found = index.at(row.partition, row.off)
        if found is None or found.value != row.value:
            there = "nothing" if found is None else f"value {found.value}"
            text = f"consumer {row.client} read value {row.value} at offset {row.off} of partition "
            yield Anomaly("sim-I11", row.eid, f"{text}{row.partition}, where {there} is")


def _from_nobody(index: Index) -> Iterator[Anomaly]:
    """Records that no client sent; a history without clients does not show that."""
    for log in index.canon.values() if index.invoked else ():
        for row in log:
            given = index.op_of.get(row.value)
            if given is None or given.partition != row.partition:
                where = "to no client" if given is None else f"over for partition {given.partition}"
                text = f"value {row.value} lies at offset {row.off} of partition {row.partition}, "
                yield Anomaly("sim-I11", row.eid, f"{text}and was handed {where}")


def jumps(index: Index) -> Iterator[Anomaly]:
    """sim-I12: every offset is that of a record, so the next one is one more, or the log start, as
    far as it had moved by then. The first is the one that it asked for."""
    next_off: dict[tuple[int, int], int] = {}
    begun: dict[tuple[int, int], None] = {}
    start: dict[int, int] = {}
    moves = [row for row in index.rows["snapshot"] if row.off is not None]
    moves += [row for row in index.rows["apply"] if row.aux is not None]
    for row in sorted([*index.rows["fetch"], *index.rows["poll"], *moves], key=_eid):
        who = (row.client, row.partition)
        if row.kind in {"snapshot", "apply"}:
            off = row.off if row.kind == "snapshot" else row.aux
            start[row.partition] = max(off, start.get(row.partition, 0))
        elif row.kind == "fetch":
            if who not in begun:
                next_off[who] = row.off
        else:
            wanted = next_off.get(who, row.off)
            if not wanted <= row.off <= max(wanted, start.get(row.partition, 0)):
                text = f"consumer {row.client} read offset {row.off} of partition {row.partition} "
                text += f"after {wanted - 1}" if who in begun else f"and had asked for {wanted}"
                yield Anomaly("sim-I12", row.eid, text)
            begun[who] = None
            next_off[who] = row.off + 1


def unseen(index: Index) -> Iterator[Anomaly]:
    """sim-I14: judged if some consumer got to the end, from its beginning."""
    began: dict[tuple[int, int], int] = {}
    got_to: dict[tuple[int, int], int] = {}
    for row in index.rows["fetch"]:
        who = (row.client, row.partition)
        began[who] = min(row.off, began.get(who, row.off))
        got_to[who] = max(row.off, got_to.get(who, 0))
    for row in index.rows["poll"]:
        who = (row.client, row.partition)
        began[who] = min(row.off, began.get(who, row.off))
        got_to[who] = max(row.off + 1, got_to.get(who, 0))
    first: dict[int, int] = {}
    for (client, partition), off in began.items():
        log = index.canon.get(partition)
        if log and got_to[client, partition] > log[-1].off:
            first[partition] = min(off, first.get(partition, off))
    read = {(row.partition, row.value) for row in index.rows["poll"]}
    for row, given in index.acked:
        key = (row.partition, given.value)
        if row.partition not in first or key in read or key not in index.places:
            continue
        off = index.places[key][-1]
        if off >= first[row.partition] and not index.deleted(row.partition, off):
            text = f"op {row.op} with value {given.value} lies at offset {off} of partition "
            text += f"{row.partition}; consumers passed it and none was given it"
            yield Anomaly("sim-I14", row.eid, text)


def backwards(index: Index) -> Iterator[Anomaly]:
    """sim-I28. A client that goes back to an older leader, as one that knows no leader epochs may,
    gets that leader's high watermark. That is true, and no broker can prevent it (KIP-320)."""
    newest: dict[tuple[int, int], int] = {}
    highest: dict[tuple[int, int], int] = {}
    for row in index.rows["fetch"]:
        who = (row.client, row.partition)
        if row.term < newest.get(who, row.term):
            continue
        newest[who] = row.term
        before = highest.get(who, 0)
        if row.hw < before:
            text = f"consumer {row.client} was told high watermark {row.hw} of partition "
            yield Anomaly("sim-I28", row.eid, f"{text}{row.partition} after {before}")
        highest[who] = max(row.hw, before)


def _eid(row: Row) -> int:
    return int(row.eid)
