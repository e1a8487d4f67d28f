"""Barriers: answers that wait for proof that this node leads (read index, thesis 6.4).

A deposed leader that does not know it yet sees gaps, and offsets beyond its log, although the new
leader's log has those records (redpanda 12712). Some answers are final for a client:
OUT_OF_ORDER_SEQUENCE_NUMBER stops a producer for good, OFFSET_OUT_OF_RANGE sends a consumer back to
the log start offset. So before such an answer a leader proves its leadership by a barrier. If it is
confirmed, the request is judged once more, because the missing records may have arrived meanwhile,
and then the answer stands. If it is not confirmed, the client is sent to another leader.

One barrier serves all tickets that were added since the last one began.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

from ottla.broker.turn.tickets import Ticket
from ottla.raft.types import Matched, Micros

Refuse: TypeAlias = Callable[[Ticket], None]


class Doubt(NamedTuple):
    """A ticket whose answer needs proof of leadership, and the function to call with that proof."""

    ticket: Ticket
    proved: Callable[[Matched], None]


class Barriers:
    """The tickets of one leader that wait for proof; `refuse` answers that another node leads."""

    __slots__ = ("_refuse", "_under_way", "found")

    def __init__(self, refuse: Refuse) -> None:
        self._refuse = refuse
        self.found: list[Doubt] = []
        """Doubts that no barrier has begun for yet."""
        self._under_way: deque[list[Doubt]] = deque()

    def ask(self, ticket: Ticket, proved: Callable[[Matched], None]) -> None:
        """Call `proved(ticket)` once a barrier has confirmed that this node leads, unless the
        ticket is answered before. The caller must note the proof in the ticket, or it would ask
        again."""
        self.found.append(Doubt(ticket, proved))

    def take(self) -> int:
        """How many barriers to start now, 0 or 1. Each ends in one call of `ended`, in order."""
        if not self.found:
            return 0
        self._under_way.append(self.found)
        self.found = []
        return 1

    def ended(self, confirmed: bool) -> None:
        """The oldest barrier ended. `confirmed`: this node led when the barrier was asked for."""
        for doubt in self._under_way.popleft():
            if confirmed:
                doubt.proved(doubt.ticket)
            else:
                self._refuse(doubt.ticket)

    def overdue(self, now: Micros) -> None:
        """Refuse tickets whose deadline has passed."""
        for doubts in (self.found, *self._under_way):
            late = [each for each in doubts if each.ticket.deadline <= now]
            for doubt in late:
                doubts.remove(doubt)
                self._refuse(doubt.ticket)

    def fail(self) -> None:
        """This node no longer leads: refuse all tickets. The outcomes of barriers in progress still
        come."""
        waiting = list(self.open_tickets())
        self.found.clear()
        for doubts in self._under_way:
            doubts.clear()
        for ticket in waiting:
            self._refuse(ticket)

    def open_tickets(self) -> Iterator[Ticket]:
        """Every ticket of this part that waits for its answer."""
        for doubt in chain(self.found, *self._under_way):
            yield doubt.ticket
