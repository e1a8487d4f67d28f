"""At the end: is every request answered in time, whatever becomes of its leader?

What a request may take, and what it took, is in its row (`sim/world/request_watch.py`); those that
were answered in time have none. Whoever is not late by more than `GRACE` is in time: timers ring
and turns are taken a little later than they should. What had lost its connection before it was
answered is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.raft.types import Micros
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.index import Index

ID = "sim-I44"
GRACE: Micros = 100_000
"""The same number stands in `sql/clients.sql`."""


def late(index: Index) -> Iterator[Anomaly]:
    """sim-I44."""
    for row in index.rows["late"]:
        if row.client is None:
            index.unjudged[ID, row.code] += row.aux
        elif row.value > row.aux + GRACE:
            text = f"node {row.node} takes {row.value} us over what client {row.client} asks "
            text += f"({row.code}), which may take {row.aux} us"
            yield Anomaly(ID, row.eid, text)
