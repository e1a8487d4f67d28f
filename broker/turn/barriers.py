"""Barriers: answers that wait for proof that this node leads (read index, thesis 6.4).

A leader that was deposed and has not noticed sees gaps, and offsets beyond its log, where there are
none (redpanda 12712). Some answers are final for a client: OUT_OF_ORDER_SEQUENCE_NUMBER stops
producers for good, OFFSET_OUT_OF_RANGE sends a consumer back to the log start. So before it says
such a thing a leader asks the others. Confirmed, the request is judged once more (what was missing
may have come meanwhile) and the answer stands; not confirmed, another leader has to judge it.

One barrier serves everything found since the last one was asked for.
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
    """A ticket whose answer needs proof, and how it goes on with it."""

    ticket: Ticket
    proved: Callable[[Matched], None]


class Barriers:
    """The doubts of one leader; `refuse` sends the client of a ticket to another one."""

    __slots__ = ("_refuse", "_under_way", "found")

    def __init__(self, refuse: Refuse) -> None:
        self._refuse = refuse
        self.found: list[Doubt] = []
        """Since the last barrier was asked for."""
        self._under_way: deque[list[Doubt]] = deque()

    def ask(self, ticket: Ticket, proved: Callable[[Matched], None]) -> None:
        """`proved(ticket)` once this node is known to lead, unless the ticket is answered before.

        It is called at most once; the ticket must remember that, or it will be asked for again.
        """
        self.found.append(Doubt(ticket, proved))

    def take(self) -> int:
        """Barriers to start now: each ends in one `ended`, in order."""
        if not self.found:
            return 0
        self._under_way.append(self.found)
        self.found = []
        return 1

    def ended(self, confirmed: bool) -> None:
        """The oldest barrier ended; `confirmed`: this node led after it was asked for."""
        for doubt in self._under_way.popleft():
            if confirmed:
                doubt.proved(doubt.ticket)
            else:
                self._refuse(doubt.ticket)

    def overdue(self, now: Micros) -> None:
        """Who has waited too long is sent elsewhere."""
        for doubts in (self.found, *self._under_way):
            late = [each for each in doubts if each.ticket.deadline <= now]
            for doubt in late:
                doubts.remove(doubt)
                self._refuse(doubt.ticket)

    def fail(self) -> None:
        """This node leads no longer. The outcomes of barriers under way are still to come."""
        waiting = list(self.open_tickets())
        self.found.clear()
        for doubts in self._under_way:
            doubts.clear()
        for ticket in waiting:
            self._refuse(ticket)

    def open_tickets(self) -> Iterator[Ticket]:
        """Every ticket in here that waits for its answer."""
        for doubt in chain(self.found, *self._under_way):
            yield doubt.ticket
