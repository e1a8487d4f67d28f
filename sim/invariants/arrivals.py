"""At the end: requests of one connection and producer are decided in the order of arrival.

A request may be decided more than once: a gap is judged again after a barrier, and a full table
when there is room. Its first decision counts. A request that was refused before the rules, or that
its leader lost, is not decided at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.invariants.index import Index

ID = "sim-I45"


def overtaken(index: Index) -> Iterator[Anomaly]:
    """sim-I45."""
    seen: set[tuple[int, ...]] = set()
    latest: dict[tuple[int, ...], int] = {}
    for row in index.rows["decide"]:
        if row.aux is None:
            if row.node != MODEL_NODE:
                index.unjudged[ID, "nobody's request"] += 1
            continue
        key = row.node, row.inc, row.partition, row.client, row.op, row.pid
        if (*key, row.aux) in seen:
            continue
        seen.add((*key, row.aux))
        last = latest.get(key, -1)
        if row.aux < last:
            text = f"node {row.node} decides about request {row.aux} of client {row.client}, "
            text += f"producer {row.pid}, partition {row.partition}, after request {last}"
            yield Anomaly(ID, row.eid, text)
        latest[key] = max(last, row.aux)
