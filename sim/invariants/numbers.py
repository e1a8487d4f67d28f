"""Figures of a run that are only measured, not judged."""

from __future__ import annotations

from ottla.sim.invariants.index import Index

ACKED_SHARE = "sim-I32 acknowledged, of a thousand"
LONGEST_GAP = "sim-I33 longest gap, us"
NOT_JUDGED = "sim-I43 not judged"


def acked_share(index: Index) -> int:
    """sim-I32: how many of a thousand records were acknowledged; 0 if there were none."""
    given = len(index.invoked)
    ok = {row.op: row for row in index.rows["ok"] if row.op in index.invoked}
    return len(ok) * 1000 // given if given else 0


def longest_gap(index: Index) -> int:
    """sim-I33: the longest time in us between two acknowledgements of a partition with an election
    of another leader in between; 0: there was none. acks=0 does not count, because no node answers
    it."""
    longest = 0
    before: dict[int, int] = {}
    elected: dict[int, bool] = {}
    rows = [*index.rows["ok"], *index.rows["leader"]]
    for row in sorted(rows, key=lambda row: int(row.eid)):
        if row.kind == "leader":
            elected[row.partition] = True
        elif row.acks != 0:
            if elected.get(row.partition) and row.partition in before:
                longest = max(longest, row.t_us - before[row.partition])
            before[row.partition], elected[row.partition] = row.t_us, False
    return longest
