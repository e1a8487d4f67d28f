"""`Decoder`: the values in batches.

The same bytes lie in every log and go to every consumer; a run parses them once.
"""

from __future__ import annotations

from ottla.log.records import records_of
from ottla.log.types import RecordBatch
from ottla.sim.world.batch import value_of


class Decoder:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[int, ...]] = {}

    def values(self, batch: RecordBatch) -> tuple[int, ...]:
        """The values of its records, in order."""
        known = self._values.get(batch.data)
        if known is None:
            known = tuple([value_of(each.value or b"") for each in records_of(batch)])
            self._values[batch.data] = known
        return known
