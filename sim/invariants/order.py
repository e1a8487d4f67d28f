"""At the end: the canonical log, compared with what idempotence promises.

Records without a producer id, or with epoch -1, are left out: nothing is promised for them.
Sequences are compared on a circle: 0 follows 2147483647, and of two numbers the later one is less
than half a circle ahead (K-SEQUENCE). A forgotten producer begins anew (`Index.spell`).

A copy that was deleted from the front of the log was first. No row says what it held. But the apply
rows say which batch it was, and the client's rows say which records that batch had, because a batch
has records that its client was handed one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import SEQUENCES, Index, idempotent


def duplicates(index: Index) -> Iterator[Anomaly]:
    """sim-I02: within one epoch of a producer; what its client sent again in a new epoch is
    sim-I34's."""
    sequences: dict[tuple[int, ...], int] = {}
    values: dict[tuple[int, ...], int] = {}
    for row in index.producers():
        who = (row.partition, row.pid, row.epoch, index.spell(row))
        first = sequences.setdefault((*who, row.seq), row.off)
        if first != row.off:
            yield Anomaly("sim-I02", row.eid, f"sequence {row.seq} {_twice(row, first)}")
        first = values.setdefault((*who, row.value), row.off)
        if first != row.off:
            yield Anomaly("sim-I02", row.eid, f"value {row.value} {_twice(row, first)}")


def reordered(index: Index) -> Iterator[Anomaly]:
    """sim-I03: only first copies count, in the order in which their client was handed them. A
    forgotten producer may go on with any record; what it skipped may follow."""
    newest: dict[tuple[int, ...], int] = {}
    oldest: dict[tuple[int, ...], int] = {}
    deleted = _deleted(index)
    for row in index.producers():
        given = index.op_of.get(row.value)
        if given is None or index.places[row.partition, row.value][0] != row.off:
            continue
        where = row.partition, given.client, given.seq
        again = given.partition == row.partition and where in deleted
        who = (row.partition, given.client, row.pid, index.spell(row))
        before = newest.get(who, -1)
        begun = oldest.setdefault(who, given.op)
        late = given.op < before and (given.op > begun or not index.spell(row))
        if late and not again:
            text = f"op {given.op} of producer {row.pid} is at offset {row.off} of partition "
            text += f"{row.partition}, after the later op {before}"
            yield Anomaly("sim-I03", row.eid, text)
        newest[who] = max(given.op, before)


def gaps(index: Index) -> Iterator[Anomaly]:
    """sim-I04: sequences are unwrapped, so that *next* is one more. The first sequence is not
    checked. A broker that knows nothing of a producer may accept any, as Kafka does, so records
    before it that a dead leader took with it are no gap; rows do not say whether the profile does
    that."""
    known: dict[tuple[int, ...], tuple[int, int, int]] = {}
    for row in index.producers():
        who = (row.partition, row.pid, row.epoch, index.spell(row))
        seq, place, furthest = known.get(who, (row.seq - 1, -1, -1))
        place += _ahead(row.seq, seq)
        if place > furthest + 1:
            text = f"producer {row.pid}, epoch {row.epoch} goes on with sequence {row.seq} at "
            text += f"offset {row.off} of partition {row.partition}: "
            yield Anomaly("sim-I04", row.eid, f"{text}{place - furthest - 1} before it are missing")
        known[who] = (row.seq, place, max(place, furthest))


def epochs(index: Index) -> Iterator[Anomaly]:
    """sim-I05."""
    newest: dict[tuple[int, ...], int] = {}
    for row in index.producers():
        who = (row.partition, row.pid, index.spell(row))
        before = newest.get(who)
        if before is not None and row.epoch < before:
            text = f"producer {row.pid} writes with epoch {row.epoch} {_where(row)}, after {before}"
            yield Anomaly("sim-I05", row.eid, text)
        elif before is not None and row.epoch > before and row.seq != 0:
            text = f"epoch {row.epoch} of producer {row.pid} begins with sequence {row.seq} "
            yield Anomaly("sim-I05", row.eid, text + _where(row))
        newest[who] = row.epoch if before is None else max(row.epoch, before)


def _deleted(index: Index) -> set[tuple[int, int, int]]:
    """Records that were committed before the beginning of the canonical log: partition, client, and
    place among the records that it was handed."""
    starts = {partition: rows[0].off for partition, rows in index.canon.items() if rows}
    gone: dict[tuple[int, ...], int] = {}
    for row in index.rows["apply"]:
        before = _before(row, starts.get(row.partition, 0))
        if before > 0:
            batch = row.partition, row.pid, row.epoch, row.seq
            gone[batch] = max(gone.get(batch, 0), before)
    ends: dict[tuple[int, int, int], int] = {}
    for row in index.rows["send"] if gone else ():
        records = gone.get((row.partition, row.pid, row.epoch, row.seq), 0)
        first = index.invoked[row.op].seq if records and row.op in index.invoked else None
        if first is not None:
            begins = row.partition, row.client, first
            ends[begins] = max(ends.get(begins, 0), first + records)
    return {
        (partition, client, place)
        for (partition, client, first), end in ends.items()
        for place in range(first, end)
    }


def _before(row: Row, start: int) -> int:
    """How many records of a producer's batch are before an offset."""
    if row.seq_last is None or row.off >= start or not idempotent(row):
        return 0
    return int(min(start - row.off, (row.seq_last - row.seq) % SEQUENCES + 1))


def _twice(row: Row, first: int) -> str:
    places = f"{first} and {row.off} of partition {row.partition}"
    return f"of producer {row.pid}, epoch {row.epoch} is at offsets {places}"


def _where(row: Row) -> str:
    return f"at offset {row.off} of partition {row.partition}"


def _ahead(seq: int, before: int) -> int:
    ahead = (seq - before) % SEQUENCES
    return ahead if ahead < SEQUENCES // 2 else ahead - SEQUENCES
