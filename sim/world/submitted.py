"""Whose tickets are: a ticket in a partition says which client of the run asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.raft.types import GroupId, Matched
from ottla.sim.world.life import Life


class Asker(NamedTuple):
    """A client and its connection, by their numbers."""

    client: int
    connection: int
    """As its node counts connections."""


class Submitted:
    """The callback of a ticket, which also says whose ticket it is."""

    __slots__ = ("_tell", "arrival", "client", "connection")

    def __init__(self, asker: Asker, arrival: int, tell: Callable[[Any], None]):
        self.client, self.connection = asker
        self.arrival = arrival
        """How many tickets the connection submitted before."""
        self._tell = tell

    def __call__(self, ticket: Matched) -> None:
        """The ticket is done."""
        self._tell(ticket)


NOBODYS: tuple[int | None, int | None, int | None] = (None, None, None)


def whose(ticket: ProduceTicket) -> tuple[int | None, int | None, int | None]:
    """The client, its connection, and how many tickets that connection submitted before."""
    asked = ticket.on_done
    if isinstance(asked, Submitted):
        return asked.client, asked.connection, asked.arrival
    return NOBODYS


class TicketWatcher(Protocol):
    """Who hears of clients' tickets."""

    def asks(self, life: Life, group: GroupId, ticket: Ticket) -> None:
        """A client's ticket comes to a replica."""

    def answers(self, life: Life, group: GroupId, ticket: Ticket) -> None:
        """A produce or fetch ticket is answered."""
