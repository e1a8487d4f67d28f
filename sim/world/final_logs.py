"""The rows for all logs at the end of a run, record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.log.record_batch import SEQUENCE_MASK, identity
from ottla.log.types import RecordBatch
from ottla.raft.types import Entry
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.log_view import NOBODY, LogView


def final_rows(entry: Entry, view: LogView, decoder: Decoder) -> Iterator[dict[str, Any]]:
    """The columns of a row for each record of an entry, as the store returns it; only the chain is
    that of what was written."""
    batch = entry.payload
    if not isinstance(batch, RecordBatch):
        return
    seen, who = view.at(entry.index), identity(batch)
    pid, epoch, first, _ = NOBODY if who is None else who
    for place, value in enumerate(decoder.values(batch)):
        yield {
            "term": entry.term,
            "off": batch.base_offset + place,
            "pid": pid,
            "epoch": epoch,
            "seq": None if first is None else (first + place) & SEQUENCE_MASK,
            "value": value,
            "chain": seen.chain,
            "aux": int(entry.index <= view.commit),
        }
