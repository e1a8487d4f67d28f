"""At the end: where leader epochs ended, as readers were told, compared with the committed log.

A leader that answers has committed an entry of its own, so its log up to that entry is the
committed log, and says where each earlier epoch ended. Its own epoch ends at its log end. Epochs
without a record do not count, nor do those that end at the log start or before; the first epoch
that is left begins there. An answer is the largest epoch not above the one asked for, and where it
ended (KIP-101). A reader whose log diverges gets the same (KIP-595).
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.nodes import Epoch, nodes_of, told

UNDEFINED = -1
"""The epoch and the offset in the answer about an epoch that does not exist yet."""


def ends(index: Index) -> Iterator[Anomaly]:
    """sim-I42."""
    for row in index.rows["learn"]:
        if row.code in {"epoch", "diverging"}:
            what = f"that epoch {row.term} ended at {row.off}"
            yield from told(index, "sim-I42", row, what, _wrong(index, row))


def _wrong(index: Index, row: Row) -> str | None:
    nodes = nodes_of(index)
    served, expected = nodes.served(row), []
    for lead in served:
        epochs = nodes.epochs(row.partition, lead.term)
        if not epochs:
            return None
        for begin in nodes.begins(row):
            term, least, most = _end(row.value, _not_below(begin, epochs), nodes.log_end(row, lead))
            if row.term == term and least <= row.off <= most:
                return ""
            expected.append(f"epoch {term} ended at {least}" + f" to {most}" * (most > least))
    if not served:
        return "it did not lead"
    return f"asked for epoch {row.value}; {', or '.join(dict.fromkeys(expected))}"


def _end(asked: int, epochs: list[Epoch], log_end: tuple[int, int]) -> tuple[int, int, int]:
    """The epoch that should be answered, and the least and the highest offset at which it may have
    ended."""
    if asked < 0 or asked > epochs[-1].term:
        return UNDEFINED, UNDEFINED, UNDEFINED
    if asked == epochs[-1].term:
        return asked, *log_end
    higher = next(place for place, each in enumerate(epochs) if each.term > asked)
    end = epochs[higher].start
    return epochs[higher - 1].term if higher else asked, end, end


def _not_below(begin: int, epochs: list[Epoch]) -> list[Epoch]:
    """The epochs, without what lies below the log start."""
    gone = sum(each.start <= begin for each in epochs) - 1
    return [Epoch(epochs[gone].term, begin), *epochs[gone + 1 :]] if gone >= 0 else epochs
