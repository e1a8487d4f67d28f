"""`Leadership`: what it means to lead a term, the same for every machine.

A machine has one. Its replica says when a term begins and ends, when the barriers of that term end,
and how far followers are; the machine asks whether it leads, and since when:

    begin        this node leads: the *opening wait* begins. What earlier terms replicated is known
                 when the term's own first entry is applied (promise-R3); until then nobody is
                 served. Who comes earlier waits (`wait`)
    opens, open  asked by the machine as it applies: the wait is over, everybody in it is served, in
                 order of arrival, but who only reads after who writes
    barriers     answers that need proof that this node still leads (`barriers.py`)
    followers    who counts how far followers are; nobody, where Raft's majority is all that counts
    stop, follow, close
                 this node leads no more. The machine is told (`Machine.resign`), and calls `fail`
                 where those who wait here have their turn to be refused

`refuse`, which the machine hands in, answers in its own words that another node leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple, Protocol

from ottla.broker.counters import Counters
from ottla.broker.turn.barriers import Barriers, Refuse
from ottla.broker.turn.tickets import Ticket
from ottla.raft.types import NO_NODE, LogIndex, Matched, Micros, NodeId, Term


class Followers(Protocol):
    """Whoever counts how far a leader's followers are: a partition's in-sync rule."""

    def begin(self, now: Micros, log_end: LogIndex, /) -> None:
        """A term begins; `log_end` is the last index before its own first entry."""

    def note(self, follower: NodeId, match: LogIndex, log_end: LogIndex, now: Micros, /) -> None:
        """The follower's log is known to equal ours up to `match`; ours ends at `log_end`."""

    def contact(self, follower: NodeId, at: Micros, /) -> None:
        """The follower was alive and following at `at`, maybe some time ago."""


class _Uncounted:
    """Raft's majority is all that counts."""

    def begin(self, now: Micros, log_end: LogIndex) -> None:
        """Nobody is counted."""

    def note(self, follower: NodeId, match: LogIndex, log_end: LogIndex, now: Micros) -> None:
        """Nobody is counted."""

    def contact(self, follower: NodeId, at: Micros) -> None:
        """Nobody is counted."""


class Waiting(NamedTuple):
    """A ticket in the opening wait, and how it goes on."""

    ticket: Ticket
    serve: Callable[[Matched], None]


class Leadership:
    """See the module's text. `counters` count what happens to it, where somebody wants to know."""

    __slots__ = (
        "_counters",
        "_followers",
        "_noticed",
        "_readers",
        "_refuse",
        "_waiting",
        "barriers",
        "leader",
        "leading",
        "synced",
        "term",
        "term_start",
    )

    def __init__(
        self,
        refuse: Refuse,
        *,
        followers: Followers | None = None,
        counters: Counters | None = None,
    ):
        self.leading = False
        self.leader: NodeId = NO_NODE
        """Who leads; `NO_NODE` while nobody is known to."""
        self.term: Term = 0
        """The leader's."""
        self.term_start: LogIndex = 0
        """Leading: the first entry of the term."""
        self.synced = False
        """Leading, and everything earlier terms replicated is applied."""
        self.barriers = Barriers(refuse)
        self._refuse = refuse
        self._waiting: list[Waiting] = []
        self._readers: list[Waiting] = []
        self._followers = followers or _Uncounted()
        self._noticed: Callable[[Micros], None] | None = None
        self._counters = counters or Counters()

    # --- the term -----------------------------------------------------------------------------

    def begin(self, term: Term, leader: NodeId, term_start: LogIndex, now: Micros) -> None:
        """This node, `leader`, leads `term`; it serves once entry `term_start` is applied."""
        self.leading, self.leader, self.term = True, leader, term
        self.term_start = term_start
        self._counters.leaderships += 1
        self._followers.begin(now, term_start - 1)

    def stop(self) -> bool:
        """This node leads no more. True: it did until now."""
        was_leading, self.leading, self.synced = self.leading, False, False
        return was_leading

    def follow(self, leader: NodeId, term: Term) -> bool:
        """This node follows `leader`, or nobody that is known. True: it led until now."""
        self._counters.step_downs += self.leading
        self.leader, self.term = leader, term
        return self.stop()

    def close(self) -> bool:
        """The replica ends with its node, or its topic: that is no step-down. True: it led until
        now."""
        self.leader = NO_NODE
        return self.stop()

    # --- the opening wait ---------------------------------------------------------------------

    def wait(
        self, ticket: Ticket, serve: Callable[[Matched], None], *, reads: bool = False
    ) -> None:
        """Leading, and not synced: `serve(ticket)` once it is, unless it is answered before.
        `reads`: the ticket writes nothing."""
        (self._readers if reads else self._waiting).append(Waiting(ticket, serve))

    def _take_waiting(self) -> list[Waiting]:
        waiting = [*self._waiting, *self._readers]
        self._waiting.clear()
        self._readers.clear()
        return waiting

    def opens(self, applied: LogIndex) -> bool:
        """Whether the opening wait ends with what is applied now: once in each term."""
        return self.leading and not self.synced and applied >= self.term_start

    def open(self) -> None:
        """It is over: serve who waited."""
        self.synced = True
        for each in self._take_waiting():
            if not each.ticket.done:
                each.serve(each.ticket)

    # --- barriers -----------------------------------------------------------------------------

    def take_barriers(self) -> int:
        """How many barriers to start now; each ends in one `barriers.ended`, in order."""
        wanted = self.barriers.take()
        self._counters.barriers += wanted
        return wanted

    # --- followers ----------------------------------------------------------------------------

    def follower_progress(
        self, follower: NodeId, match: LogIndex, log_end: LogIndex, now: Micros
    ) -> None:
        """The follower's log is known to equal ours, which ends at `log_end`, up to `match`."""
        self._followers.note(follower, match, log_end, now)
        if self._noticed is not None:
            self._noticed(now)

    def follower_contact(self, follower: NodeId, at: Micros) -> None:
        """The follower was alive and following at `at`, maybe some time ago."""
        self._followers.contact(follower, at)

    def notice_followers(self, call: Callable[[Micros], None] | None) -> None:
        """From now on `call(now)` after each progress of a follower; None: no more."""
        self._noticed = call

    # --- those who wait -----------------------------------------------------------------------

    def overdue(self, now: Micros) -> None:
        """Who has waited too long is sent elsewhere: none of them has a place in the log yet."""
        for waiting in (self._waiting, self._readers):
            for each in [each for each in waiting if each.ticket.deadline <= now]:
                waiting.remove(each)
                self._refuse(each.ticket)
        self.barriers.overdue(now)

    def fail(self) -> None:
        """This node leads no more: everybody who waits here is sent elsewhere."""
        for each in self._take_waiting():
            self._refuse(each.ticket)
        self.barriers.fail()

    def open_tickets(self) -> Iterator[Ticket]:
        """Every ticket in here that waits for its answer."""
        for each in chain(self._waiting, self._readers):
            yield each.ticket
        yield from self.barriers.open_tickets()
