"""Decisions that the reference model disagrees with (`sim/world/reference_model.py`).

The model is asked while the run goes on. If it disagrees, its decision is a row of node 0 right
after the leader's. That does not end the run, because the consequences of a wrong decision (a
record stored twice, or refused for good) tell more than the decision alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index

MODEL_NODE = 0
"""The node number that stands for the reference model."""


def misjudged(index: Index) -> Iterator[Anomaly]:
    """sim-I35."""
    return differing(index.rows["decide"])


def differing(rows: Iterable[Row]) -> Iterator[Anomaly]:
    """sim-I35, from `decide` rows in their order."""
    taken: Row = None
    for row in rows:
        if row.node != MODEL_NODE:
            taken = row
            continue
        text = f"batch {row.seq}..{row.seq_last} of producer {row.pid}, epoch {row.epoch}: "
        text += f"node {taken.node} decides {_told(taken)}" if taken else "nobody decides"
        yield Anomaly("sim-I35", row.eid, f"{text}, the reference model {_told(row)}")


def _told(row: Row) -> str:
    return f"{row.code}" + ("" if row.off is None else f" of offset {row.off}")
