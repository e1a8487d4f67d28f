"""The times of produce requests in a run: when each record was given, sent and acknowledged.

Times are microseconds of the simulator's clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.raft.types import Micros
from ottla.sim.history.history import Event


class Requests:
    """The requests of one run in which nothing goes wrong, each with a batch of its own."""

    def __init__(self, rows: Sequence[Event]):
        self.handed = _times(rows, "inv")
        self.sent = _times(rows, "send")
        """By the first record of a batch."""
        self.acknowledged = _times(rows, "ok")
        assert len(self.acknowledged) == len(self.handed), (
            f"{len(self.handed)} records, {len(self.acknowledged)} acknowledged"
        )

    def waits(self, first: int) -> list[Micros]:
        """The time from the producer's call to the acknowledgement, of all records from `first`."""
        handed, ends = self.handed, self.acknowledged
        return [ends[op] - at for op, at in handed.items() if op >= first]

    def trips(self) -> list[Micros]:
        """From being sent to the acknowledgement, of each batch."""
        return [self.acknowledged[op] - at for op, at in self.sent.items()]

    def rate(self, batch: int, in_flight: int) -> float:
        """Records per second while `in_flight` requests of `batch` records are always under way:
        over whole rounds of them, so that neither the first request nor the last counts."""
        ends = sorted(self.acknowledged[op] for op in self.sent)
        rounds = (len(ends) - 1) // in_flight
        assert rounds > 0, f"{len(ends)} requests make no round of {in_flight}"
        counted = rounds * in_flight
        return batch * counted / (ends[counted] - ends[0]) * 1e6


def _times(rows: Sequence[Event], kind: str) -> dict[int, Micros]:
    return {row.op: row.t_us for row in rows if row.kind == kind and row.op is not None}
