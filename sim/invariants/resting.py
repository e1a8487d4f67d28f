"""At the end: did a leader fall while a run rested?

All faults have ended long before, every node is up and hears all others, and no entry waits
(`sim/ending/rest.py`). Then nothing is a reason for a change of leadership.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.index import Index


def fallen(index: Index) -> Iterator[Anomaly]:
    """sim-I50."""
    phases = index.rows["phase"]
    begin = min((row.eid for row in phases if row.code == "rest"), default=None)
    if begin is None:
        return
    end = max((row.eid for row in phases if row.code == "rested"), default=None)
    for row in index.rows["stepdown"]:
        if row.eid > begin and (end is None or row.eid < end):
            text = f"node {row.node} gives up term {row.term} of partition {row.partition}"
            yield Anomaly("sim-I50", row.eid, f"{text} while nothing is wrong")
