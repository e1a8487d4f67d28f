"""The table of invariants: what must hold of every run, one row each.

A row says what the invariant is, where it is judged and by what; the statement of the same id in
`sql/` says it again for a sweep, and the two agree on every labelled history. The page
`docs/reference/invariants.md` is written from this table. The rows stand in `rows/`, by subject.

Judged online: the run can end at the first hit, close to the cause. Judged at the end: what needs
the final logs. What is *measured* judges nothing by itself.
"""

from __future__ import annotations

from ottla.sim.invariants.invariant import Invariant
from ottla.sim.invariants.rows.clients import CLIENTS
from ottla.sim.invariants.rows.controller import CONTROLLER
from ottla.sim.invariants.rows.metadata import METADATA
from ottla.sim.invariants.rows.producers import PRODUCERS
from ottla.sim.invariants.rows.raft import RAFT
from ottla.sim.invariants.rows.readers import READERS

INVARIANTS: tuple[Invariant, ...] = tuple(
    sorted((*CLIENTS, *CONTROLLER, *METADATA, *PRODUCERS, *RAFT, *READERS), key=lambda row: row.id)
)

WAITING: dict[str, str] = {
    "sim-I29": "config safety: waits for membership change",
    "sim-I30": "staleness of lease reads: waits for leases",
}
"""Numbers of the catalogue that have no row yet, and why (docs/not-implemented.md)."""

_BY_ID = {row.id: row for row in INVARIANTS}


def invariant(name: str) -> Invariant:
    """The row of that id. Raises LookupError, for one that waits with what it waits for."""
    if name in _BY_ID:
        return _BY_ID[name]
    raise LookupError(f"there is no invariant {name!r}: {WAITING.get(name, 'unknown')}")
