"""At the end: was a producer forgotten although it had written a short time before?

A leader proposes to forget producers of which it has applied no batch for the expiry time, by its
own clock; or those that are idle for longest, if its table is full. A leader whose table was full
in this term is not judged: one that begins may find that out before it has applied its log (seed
500477). Nor is one whose clock was changed, nor one that learned of the producer from a snapshot or
in an earlier life. A tenth of the time is given away as a margin.

Source: producer.id.expiration.ms; docs/decisions/0011.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.refusals import FULL

TENTHS = 9
"""Of the expiry time, which must have passed at least."""


def forgotten_early(index: Index) -> Iterator[Anomaly]:
    """sim-I51."""
    expiry = max((row.value or 0 for row in index.rows["phase"] if row.code == "load"), default=0)
    told = index.rows["expire"] if expiry else ()
    if not told:
        return
    changed = {row.node for row in index.rows["fault"] if row.code.startswith("its clock")}
    full = _by(
        (row for row in index.rows["decide"] if row.code == FULL), "partition", "node", "term"
    )
    written = _by(index.rows["append"], "partition", "node", "log_index")
    applied = _by(index.rows["apply"], "partition", "node", "inc", "pid")
    for row in told:
        entry = _last(written.get((row.partition, row.node, row.log_index), ()), row.eid)
        if entry is None or entry.aux != 1 or row.node in changed:
            continue  # another node decided it, or one whose clock was changed
        seen = _last(applied.get((row.partition, row.node, entry.inc, row.pid), ()), entry.eid)
        made_room = _last(full.get((row.partition, row.node, entry.term), ()), entry.eid)
        if seen is None or made_room is not None:
            continue
        if 10 * (entry.t_us - seen.t_us) < TENTHS * expiry:
            text = f"node {row.node} forgets producer {row.pid} of partition {row.partition} "
            text += f"{(entry.t_us - seen.t_us) // 1_000} ms after its last batch"
            yield Anomaly("sim-I51", row.eid, text)


def _by(rows: Iterable[Row], *columns: str) -> dict[tuple[int, ...], list[Row]]:
    key = attrgetter(*columns)
    found: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _last(rows: Sequence[Row], before: int) -> Row | None:
    return next((row for row in reversed(rows) if row.eid < before), None)
