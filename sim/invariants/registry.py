"""The table of invariants: what must hold in every run, one row each.

A row says what the invariant is, where it is judged and by what. The statement of the same id in
`sql/` says it again for a sweep; the two agree on every labelled history. The page
`docs/reference/invariants.md` is generated from this table. The rows are in `rows/`, by subject.

Judged online: the run can end at the first violation, close to the cause. Judged at the end: what
needs the final logs. *Measured* rows judge nothing by themselves.
"""

from __future__ import annotations

from ottla.sim.invariants.invariant import Invariant
from ottla.sim.invariants.rows.clients import CLIENTS
from ottla.sim.invariants.rows.controller import CONTROLLER
from ottla.sim.invariants.rows.metadata import METADATA
from ottla.sim.invariants.rows.producers import PRODUCERS
from ottla.sim.invariants.rows.raft import RAFT
from ottla.sim.invariants.rows.readers import READERS
from ottla.sim.plugins.own import OwnInvariant, added

INVARIANTS: tuple[Invariant, ...] = tuple(
    sorted((*CLIENTS, *CONTROLLER, *METADATA, *PRODUCERS, *RAFT, *READERS), key=lambda row: row.id)
)

WAITING: dict[str, str] = {
    "sim-I29": "config safety: waits for membership change",
    "sim-I30": "staleness of lease reads: waits for leases",
}
"""Numbers of the catalogue without a row, and why (docs/not-implemented.md)."""

_BY_ID = {row.id: row for row in INVARIANTS}
_ITSELF = ("an invariant of the broker itself", "the broker's own assertions hold")
"""What is said of the one that has no row, sim-I00."""


def invariant(name: str) -> Invariant:
    """The row of that id. Raises LookupError; for a number without a row it says why there is
    none."""
    if name in _BY_ID:
        return _BY_ID[name]
    raise LookupError(f"there is no invariant {name!r}: {WAITING.get(name, 'unknown')}")


def said_of(name: str, plugins: str = "") -> tuple[str, str]:
    """What the invariant of that id is called when it does not hold, and what must hold; one of a
    run's plugins perhaps."""
    if name in _BY_ID:
        return _BY_ID[name].name, _BY_ID[name].says
    own = {each.id: each.says for each in added(plugins, OwnInvariant)}
    return (name, own[name]) if name in own else _ITSELF
