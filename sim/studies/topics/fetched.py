"""A leader's answer to a fetch: its valid batches, and what is wrong after them. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ottla.broker.client import DamagedBatchError, split_batches
from ottla.log.record_batch import BatchDefect
from ottla.log.types import Offset, RecordBatch
from ottla.sim.studies.topics.connection import UnfitError


class Fetched(NamedTuple):
    """What a leader answered to one fetch."""

    batches: list[RecordBatch]
    at: Offset
    """Where to go on if there is no batch: after what is gone."""
    damage: str = ""
    """What is wrong with the bytes after these batches; empty: nothing."""


def split(records: bytes, at: Offset, high_watermark: Offset) -> Fetched:
    """Split the bytes into batches. The first batch comes whole, however small the limits of a
    fetch are (KIP-74), and holds `at` or what comes next; offsets rise up to the high watermark.
    CRCs are not checked here. Raises `UnfitError`."""
    damage = ""
    try:
        batches = split_batches(records)
    except DamagedBatchError as error:
        batches, damage = error.behind, error.defect.value
        if error.defect is BatchDefect.OLD_MAGIC and not batches:
            raise UnfitError(f"offset {at} is in message format 0 or 1; 2 is read") from None
    least = at
    for place, batch in enumerate(batches):
        if not max(least, batch.base_offset) <= batch.last_offset < high_watermark:
            offsets = f"{batch.base_offset} to {batch.last_offset}"
            return Fetched(batches[:place], at, f"it names offsets {offsets}, which cannot be")
        least = batch.last_offset + 1
    if not batches and not damage:
        damage = "its length is more than was sent"
    return Fetched(batches, at, damage)
