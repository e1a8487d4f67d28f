"""At the end: was each step of a node one that the specification allows?

The specification (`sim/specification`) checks a run while it goes on, and a *forbidden* row says
which step it did not allow. That does not end the run, as a decision that the reference model
disagrees with does not (`decisions.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.index import Index


def forbidden(index: Index) -> Iterator[Anomaly]:
    """sim-I52."""
    for row in index.rows["forbidden"]:
        where = "in another topic" if row.partition is None else f"in partition {row.partition}"
        yield Anomaly("sim-I52", row.eid, f"node {row.node}, {where}: {row.code}")
