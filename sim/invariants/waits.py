"""At the end: is every request answered in time, whatever happens to its leader?

The row of a request has the time that it may take, and the time that it took
(`sim/world/request_watch.py`); requests answered in time have no row. An answer that is at most
`GRACE` late counts as in time, because timers and turns may be a little late. A request whose
connection was lost before the answer is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.raft.types import Micros
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.index import Index

ID = "sim-I44"
GRACE: Micros = 100_000
"""In us. `sql/clients.sql` has the same number."""


def late(index: Index) -> Iterator[Anomaly]:
    """sim-I44."""
    for row in index.rows["late"]:
        if row.client is None:
            index.unjudged[ID, row.code] += row.aux
        elif row.value > row.aux + GRACE:
            text = f"node {row.node} takes {row.value} us for a request of client {row.client} "
            text += f"({row.code}) that may take {row.aux} us"
            yield Anomaly(ID, row.eid, text)
