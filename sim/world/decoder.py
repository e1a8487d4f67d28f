"""`Decoder`: what batches hold, each looked into once.

The same bytes lie in every log and are given to every consumer; in a run they are parsed once.
"""

from __future__ import annotations

from ottla.log.records import records_of
from ottla.log.types import RecordBatch
from ottla.sim.world.batch import value_of


class Decoder:
    """See the module's text."""

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[int, ...]] = {}

    def values(self, batch: RecordBatch) -> tuple[int, ...]:
        """What its records hold, in order."""
        known = self._values.get(batch.data)
        if known is None:
            known = tuple([value_of(each.value or b"") for each in records_of(batch)])
            self._values[batch.data] = known
        return known
