"""At the end: what fetches show, compared with what the node that answered knew committed."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.nodes import in_order, nodes_of, told
from ottla.sim.invariants.offsets import shown


def held(index: Index) -> Iterator[Anomaly]:
    """sim-I41."""
    last: dict[tuple[int, int], Row] = {}
    for row in in_order((index.rows["fetch"], index.rows["poll"])):
        reader = row.client, row.partition
        if row.kind == "fetch":
            last[reader] = row
            if row.aux is not None:
                wrong = _wrong(index, row)
                yield from told(index, "sim-I41", row, f"high watermark {row.hw}", wrong)
        elif reader in last and row.off >= last[reader].hw:
            wrong = f"its high watermark is {last[reader].hw}"
            yield from told(index, "sim-I41", row, f"the record at {row.off}", wrong)


def _wrong(index: Index, row: Row) -> str | None:
    nodes = nodes_of(index)
    terms = [each.term for each in nodes.served(row)]
    if row.term not in terms:
        return f"epoch {row.term} is told, and it did not lead then"
    return shown(nodes, row, row.hw)
