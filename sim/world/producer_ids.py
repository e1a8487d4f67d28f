"""The producer ids that clients of a run get."""

from __future__ import annotations

from ottla.log.types import ProducerId
from ottla.sim.history.history import History
from ottla.sim.invariants.beyond import SAME_ID


class ProducerIds:
    """Hands on what nodes give out, and may give an id out twice (beyond the fault budget)."""

    def __init__(self, history: History):
        self.again = 0
        """How many of the next ids will be ones that were given out before."""
        self._history = history
        self._last: ProducerId | None = None

    def given_out(self, producer_id: ProducerId) -> ProducerId:
        """The id that a producer gets: the new one, unless one is to be given out twice."""
        if self.again and self._last is not None:
            self.again -= 1
            self._history.add("beyond", pid=self._last, code=SAME_ID)
            return self._last
        self._last = producer_id
        return producer_id
