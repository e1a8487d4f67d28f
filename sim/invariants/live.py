"""At the end: has the cluster recovered?

This is judged for runs that healed. `phase` rows say which nodes were healed, and up and connected
from then on; when the given time is over (*done*); and which partitions are excused because they
cannot recover. If a script heals more nodes after that, nothing is excused any more. For every
other partition a healed node must lead, no client may still wait, some record handed over after the
healing must be acknowledged, and the committed logs of healed nodes must have the same end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index

_LEADING = ("leader", "stepdown", "crash")
_ENDINGS = ("ok", "fail", "info")


def stuck(index: Index) -> Iterator[Anomaly]:
    """sim-I31."""
    phases = index.rows["phase"]
    healed = max((row.eid for row in phases if row.code == "heal"), default=None)
    done = max((row.eid for row in phases if row.code == "done"), default=None)
    if healed is None or done is None:
        return
    core = {row.node: row for row in phases if row.code == "heal"}
    excused = {row.partition: row for row in phases if row.code == "excused" and row.eid > healed}
    for text in (
        *_leaderless(index, core, excused),
        *_waiting(index, excused),
        *_fruitless(index, excused, healed),
        *_diverged(index, core, excused),
    ):
        yield Anomaly("sim-I31", done, text)


def _leaderless(index: Index, core: dict[int, Row], excused: dict[int, Row]) -> Iterator[str]:
    last: dict[tuple[int, int], Row] = {}
    for row in _ordered(row for kind in _LEADING for row in index.rows[kind]):
        last[row.partition, row.node] = row
    led = {
        partition: node
        for (partition, node), row in last.items()
        if row.kind == "leader" and node in core
    }
    groups = {row.partition: row for kind in ("start", "leader", "inv") for row in index.rows[kind]}
    for partition in sorted(groups):
        if partition not in led and partition not in excused:
            yield f"no node of {sorted(core)} leads partition {partition} in the end"


def _waiting(index: Index, excused: dict[int, Row]) -> Iterator[str]:
    ended = {row.op: row for kind in _ENDINGS for row in index.rows[kind]}
    for row in index.rows["inv"]:
        if row.op not in ended and row.partition not in excused:
            yield f"op {row.op} on partition {row.partition} never ended"


def _fruitless(index: Index, excused: dict[int, Row], healed: int) -> Iterator[str]:
    """Acknowledgements with acks=0 prove nothing, so they do not count."""
    asked = {row.partition: row for row in index.rows["inv"] if row.eid > healed and row.acks != 0}
    got = {row.partition: row for row in index.rows["ok"] if row.eid > healed and row.acks != 0}
    for partition in sorted(asked):
        if partition not in got and partition not in excused:
            yield f"nothing was acknowledged in partition {partition} after the healing"


def _diverged(index: Index, core: dict[int, Row], excused: dict[int, Row]) -> Iterator[str]:
    ends: dict[int, dict[int, tuple[int, int | None]]] = {}
    for (partition, node), end in _ends(index).items():
        if node in core:
            ends.setdefault(partition, {})[node] = end
    for partition, nodes in sorted(ends.items()):
        offs = {off for off, _ in nodes.values()}
        chains = {chain for _, chain in nodes.values()} - {None}
        if partition not in excused and (len(offs) > 1 or len(chains) > 1):
            told = ", ".join(f"{node}: {off}" for node, (off, _) in sorted(nodes.items()))
            yield f"committed logs of partition {partition} end differently, node: offset {told}"


def _ends(index: Index) -> dict[tuple[int, int], tuple[int, int | None]]:
    """By partition and node, the last committed offset, and the chain of its record. If all records
    were deleted, it is below the log start; a node that has not cut its log yet still holds
    them."""
    ends: dict[tuple[int, int], tuple[int, int | None]] = {}
    for kind in ("start", "append"):
        for row in index.rows[kind]:
            if row.partition >= 0:
                ends[row.partition, row.node] = (-1, None)
    for row in index.rows["snapshot"]:
        if row.off and row.off > ends.get((row.partition, row.node), (0,))[0]:
            ends[row.partition, row.node] = (row.off - 1, None)
    held: dict[tuple[int, int], tuple[int, int | None]] = {}
    for row in index.rows["final"]:
        place = (row.partition, row.node)
        if row.aux == 1 and (place not in held or row.off > held[place][0]):
            held[place] = (row.off, row.chain)
    return ends | held


def _ordered(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row.eid))
