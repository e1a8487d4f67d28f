"""Which replicas must agree at the end, by the rows of a history."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ottla.sim.invariants.findings import Row
from ottla.sim.invariants.index import Index

FINAL = "final"
Settled: TypeAlias = Callable[[Row], bool]


def settled(index: Index, for_us: int = 0) -> Settled:
    """What says whether a row is of the end, of a node that was healed at least `for_us` before,
    and of a partition that had to recover (`live.py`)."""
    phases = index.rows["phase"]
    done = any(row.code == "done" for row in phases)
    healed = {row.node: row for row in phases if row.code == "heal"}
    last = max((row.eid for row in healed.values()), default=0)
    excused = {row.partition for row in phases if row.code == "excused" and row.eid > last}

    def is_settled(row: Row) -> bool:
        if not done or row.code != FINAL or row.node not in healed or row.partition in excused:
            return False
        return not for_us or bool(healed[row.node].t_us <= row.t_us - for_us)

    return is_settled
