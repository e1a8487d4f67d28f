"""What the SQL of the invariants finds in a database of runs, as the judge in Python says it."""

from __future__ import annotations

from ottla.sim.invariants.registry import INVARIANTS
from ottla.sim.invariants.statements import Connection, prepare, queries


def sql_verdicts(connection: Connection) -> dict[int, frozenset[str]]:
    """Ids of the invariants that do not hold, by run; runs in which all hold are left out."""
    prepare(connection)
    broken: dict[int, list[str]] = {}
    for row in INVARIANTS:
        for run_id, _ in connection.execute(queries()[row.id]).fetchall() if row.judge else ():
            broken.setdefault(run_id, []).append(row.id)
    return {run_id: frozenset(ids) for run_id, ids in broken.items()}


def sql_numbers(connection: Connection, name: str) -> dict[int, int]:
    """A figure of `numbers.py` by run; runs without one are left out. After `prepare`."""
    found = connection.execute(queries()[name]).fetchall()
    return {run_id: int(n) for run_id, n in found if n is not None}


def sql_losses(connection: Connection) -> dict[tuple[int, int], tuple[int, int]]:
    """How many were acknowledged and lost, by run and acks. After `prepare`."""
    found = connection.execute(queries()["losses by acks"]).fetchall()
    return {(run_id, acks): (int(all_), int(lost)) for run_id, acks, all_, lost in found}
