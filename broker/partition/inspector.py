"""`Inspector`: Kafka's checks of a produced batch's bytes, in order of arrival (hop 4).

**Theory.** Most batches are judged when they come. One that holds very much is looked into in
slices (`looking.py`, docs/decisions/0017), and until it is judged everything produced to this
partition waits behind it, in order of arrival: as in Kafka, which validates under the log's lock.
So the order of a connection and of a producer stays what it was.

A client's time limit begins when its batch is judged, as in Kafka: what waits here is not overdue,
for it could only be told of a timeout without an offset, and be stored all the same. So it stays in
flight on its connection, and counts there, for as long as it keeps anybody busy here.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, unique

from ottla.broker.errors import DEFECT_CODES, ErrorCode
from ottla.broker.partition.state import PartitionState
from ottla.broker.turn.looks import AT_LEAST
from ottla.broker.turn.tickets import LEAST_PATIENCE, NEVER, ProduceTicket
from ottla.log.inspection import Flaw, Looking, looked_at, looked_into, verdict
from ottla.log.record_batch import BatchDefect, check_batch
from ottla.log.record_walk import Allowance
from ottla.raft.types import Micros


@unique
class Unfinished(Enum):
    """No verdict yet."""

    UNFINISHED = "there is more to look into"


UNFINISHED = Unfinished.UNFINISHED


class Inspector:
    """See the module's text. One per partition."""

    def __init__(self, state: PartitionState):
        self._state = state
        self.waiting: deque[ProduceTicket] = deque()
        """Who waits for a verdict, in order of arrival; the first one is being looked into."""
        self._looking: Looking | None = None
        self._allowance = Allowance()
        self._max_bytes = min(state.settings.max_message_bytes, state.settings.segment_bytes)

    def refusal(self, ticket: ProduceTicket, now: Micros) -> ErrorCode | Unfinished | None:
        """Kafka's checks in Kafka's order, from K-CHECKS 12 on; None: the batch may enter.
        `UNFINISHED`: ask `look_on` when there is another slice."""
        state = self._state
        if ticket.acks == -1 and state.below_minimum(now):
            return ErrorCode.NOT_ENOUGH_REPLICAS
        settings, batch = state.settings, ticket.batch
        defect = check_batch(batch, self._max_bytes)
        if defect is not None:
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

    def wait(self, ticket: ProduceTicket, now: Micros) -> None:
        """Keep a batch until it is judged; its client's time limit stands still."""
        ticket.patience = max(ticket.deadline - now, LEAST_PATIENCE)
        ticket.deadline = NEVER
        self.waiting.append(ticket)

    def judged(self, now: Micros) -> ProduceTicket:
        """Let go of the first of those that wait; from now on its client's time passes."""
        ticket = self.waiting.popleft()
        ticket.deadline = now + ticket.patience
        return ticket

    def look_on(self, ticket: ProduceTicket, now: Micros) -> ErrorCode | Unfinished | None:
        """The same for the first of those that wait, in another slice."""
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
        """Forget everybody; returns who waited."""
        waiting = list(self.waiting)
        self.waiting.clear()
        self._looking = None
        return waiting
