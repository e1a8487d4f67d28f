"""`Inspector`: Kafka's checks of a produced batch's bytes, in order of arrival (hop 4).

**Theory.** Most batches are checked when they arrive. A very large one is checked in slices
(`ottla.broker.turn.looks`, docs/decisions/0017). Until its check is finished, everything produced
to this partition waits behind it, in order of arrival, as in Kafka, which validates under the log's
lock. So the order of a connection and of a producer does not change.

A client's time limit begins when the check of its batch is finished, as in Kafka. A batch that
waits here is never overdue: the client would get a timeout without an offset, and the batch could
still be stored. So the request stays in flight on its connection, and counts there, as long as it
is here.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, unique

from ottla.broker.errors import DEFECT_CODES, ErrorCode
from ottla.broker.partition.state import ClockReading, PartitionState
from ottla.broker.turn.looks import AT_LEAST
from ottla.broker.turn.tickets import LEAST_PATIENCE, NEVER, ProduceTicket
from ottla.log.inspection import Flaw, Looking, looked_at, looked_into, verdict
from ottla.log.record_batch import BatchDefect, check_batch
from ottla.log.record_walk import Allowance
from ottla.raft.types import Micros


@unique
class Unfinished(Enum):
    """The check is not finished."""

    UNFINISHED = "there is more to look into"


UNFINISHED = Unfinished.UNFINISHED


class Inspector:
    """See the module's docstring. One per partition."""

    def __init__(self, state: PartitionState):
        self._state = state
        self.waiting: deque[ProduceTicket] = deque()
        """Tickets whose check is not finished, in order of arrival; the first is being checked."""
        self._looking: Looking | None = None
        self._allowance = Allowance()
        self._minimum_out_of_reach = (
            state.settings.profile.minimum_uncapped
            and state.settings.min_insync_replicas > state.in_sync.replicas
        )
        self._max_bytes = min(state.settings.max_message_bytes, state.settings.segment_bytes)

    def refusal(self, ticket: ProduceTicket, now: Micros) -> ErrorCode | Unfinished | None:
        """Kafka's checks in Kafka's order, from K-CHECKS 12 on. Returns the error, or None if the
        batch may enter. `UNFINISHED`: call `look_on` for another slice."""
        state = self._state
        if ticket.acks == -1 and (self._minimum_out_of_reach or state.below_minimum(now)):
            return ErrorCode.NOT_ENOUGH_REPLICAS
        settings, batch = state.settings, ticket.batch
        defect = check_batch(batch, self._max_bytes)
        if defect is not None and not self._is_judged(defect):
            if defect is BatchDefect.TOO_LARGE and len(batch.data) <= settings.max_message_bytes:
                return ErrorCode.RECORD_LIST_TOO_LARGE
            return DEFECT_CODES[defect]
        rules = settings.records
        if rules.trusts(batch, ticket.wall_ms):
            return None
        found = looked_at(batch, rules, ticket.wall_ms)
        if found is not None:
            ticket.batch = found
            return None
        self._looking = looked_into(
            batch,
            rules,
            ticket.wall_ms,
            max_bytes=settings.max_message_bytes,
            allowance=self._allowance,
        )
        return self._look(ticket, AT_LEAST)

    def _is_judged(self, defect: BatchDefect) -> bool:
        """Whether the rules of idempotence judge this defect."""
        judged = self._state.settings.profile.negative_sequences_judged
        return defect is BatchDefect.NO_SEQUENCE and judged

    def wait(self, ticket: ProduceTicket, now: Micros) -> None:
        """Keep a ticket until its check is finished; its time limit stands still."""
        ticket.patience = max(ticket.deadline - now, LEAST_PATIENCE)
        ticket.deadline = NEVER
        self.waiting.append(ticket)

    def judged(self, now: Micros) -> ProduceTicket:
        """Remove and return the first waiting ticket; its time limit runs from now on."""
        ticket = self.waiting.popleft()
        ticket.deadline = now + ticket.patience
        return ticket

    def look_on(self, ticket: ProduceTicket, now: Micros) -> ErrorCode | Unfinished | None:
        """As `refusal`, for the first waiting ticket: continue its check, or begin it."""
        if self._looking is None:
            return self.refusal(ticket, now)
        return self._look(ticket, 0)

    def _look(self, ticket: ProduceTicket, at_least: int) -> ErrorCode | Unfinished | None:
        looking, looks = self._looking, self._state.settings.looks
        assert looking is not None, "nothing is being looked into"
        given = self._allowance.left = max(looks.left, at_least)
        found = verdict(looking)
        used = given - self._allowance.left
        looks.use(used)
        if found is None:
            looks.wait(self._state.settings.group, worked=used > 0)
            return UNFINISHED
        self._looking = None
        if isinstance(found, Flaw):
            ticket.faults = found.faults
            return DEFECT_CODES[found.defect]
        ticket.batch = found
        return None

    def drop_all(self) -> list[ProduceTicket]:
        """Drop all waiting tickets and return them."""
        waiting = list(self.waiting)
        self.waiting.clear()
        self._looking = None
        return waiting


class ClockedInspector(Inspector):
    """As `Inspector`; it also reads the wall clock off each batch, for `Expiry`."""

    def refusal(self, ticket: ProduceTicket, now: Micros) -> ErrorCode | Unfinished | None:
        """As `Inspector.refusal`."""
        self._state.clock = ClockReading(ticket.wall_ms, now)
        return super().refusal(ticket, now)


def make_inspector(state: PartitionState) -> Inspector:
    """The inspector that the partition's profile needs."""
    by_timestamp = state.settings.profile.expires_by_timestamp
    return ClockedInspector(state) if by_timestamp else Inspector(state)
