"""Histories without labels: labelled ones with random changes.

They serve to compare two implementations of the same checks. They are close to the limits that the
labelled ones test, and their author did not choose them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from ottla.sim.history.history import Event

_NUMBERS = (
    "node", "inc", "client", "op", "partition", "term", "log_index", "off", "pid", "epoch", "seq",
    "value", "chain", "cand", "hw", "state_hash", "aux", "acks", "quorum",
)  # fmt: skip
_STEPS = (-1, 1, 1, 2)
_ACKS = (-1, 0, 1)
_APART = {"client": 20, "op": 50, "value": 50, "chain": 7_777}
_RECORDS = ("final", "poll", "ok")
_FURTHER = 20
"""Offsets of the second of two histories, where they are those of records."""
_LEAST = {"partition": -1, "off": -1, "epoch": -1}

Rows = list[Event]


def perturbed(events: Sequence[Event], rng: Random, changes: int = 2) -> Rows:
    """The same with a few changes; what a history is by contract stays: `op` and `value` are handed
    over once, a log has one record at an offset, rows are numbered and time goes on."""
    rows = list(events)
    for _ in range(changes):
        changed = rng.choice(_CHANGES)(list(rows), rng)
        if _sound(changed):
            rows = changed
    times = sorted(row.t_us for row in rows)
    return [row._replace(eid=eid, t_us=times[eid]) for eid, row in enumerate(rows)]


def interleaved(one: Sequence[Event], other: Sequence[Event], rng: Random) -> Rows:
    """Two histories merged into one, each in its own order. The second has other clients, records
    and logs, at later offsets of the same partitions, with the same nodes and producers. Returns
    only the first if the two cannot be merged."""
    queues = [[*reversed(one)], [_shift(row) for row in reversed(other)]]
    rows = []
    while any(queues):
        rows.append(rng.choice([each for each in queues if each]).pop())
    times = sorted(row.t_us for row in rows)
    merged = [row._replace(eid=eid, t_us=times[eid]) for eid, row in enumerate(rows)]
    return merged if _sound(merged) else list(one)


def _shift(row: Event) -> Event:
    shifted = {name: getattr(row, name) for name in _APART}
    if row.kind in _RECORDS and row.off is not None and row.off >= 0:
        shifted["off"] = row.off
    return row._replace(
        **{
            name: old + _APART.get(name, _FURTHER)
            for name, old in shifted.items()
            if old is not None
        }
    )


def _number(rows: Rows, rng: Random) -> Rows:
    place = rng.randrange(len(rows))
    row = rows[place]
    there = [name for name in _NUMBERS if getattr(row, name) is not None]
    if there:
        name = rng.choice(there)
        value = max(getattr(row, name) + rng.choice(_STEPS), _LEAST.get(name, 0))
        if name == "acks":
            value = rng.choice(_ACKS)
        rows[place] = row._replace(**{name: value})
    return rows


def _drop(rows: Rows, rng: Random) -> Rows:
    if len(rows) > 1:
        del rows[rng.randrange(len(rows))]
    return rows


def _swap(rows: Rows, rng: Random) -> Rows:
    first, second = rng.randrange(len(rows)), rng.randrange(len(rows))
    rows[first], rows[second] = rows[second], rows[first]
    return rows


def _again(rows: Rows, rng: Random) -> Rows:
    rows.insert(rng.randrange(len(rows) + 1), rng.choice(rows))
    return rows


_CHANGES: tuple[Callable[[Rows, Random], Rows], ...] = (_number, _number, _drop, _swap, _again)


def _sound(rows: Rows) -> bool:
    ops = [row.op for row in rows if row.kind == "inv"]
    values = [row.value for row in rows if row.kind == "inv"]
    records = [(row.node, row.partition, row.off) for row in rows if row.kind == "final"]
    return all(len(set(each)) == len(each) for each in (ops, values, records))
