"""`Leadership`: the state of leading a term, the same for every machine.

Each machine has one. Its replica reports when a term begins and ends, when barriers end, and how
far followers are. The machine asks it whether this node leads and may serve:

    begin        this node leads, and the *opening wait* begins. Only when the term's own first
                 entry is applied does the leader know all that earlier terms replicated
                 (promise-R3). Until then nobody is served; tickets wait (`wait`)
    opens, open  the machine calls these as it applies entries: when the wait is over, all waiting
                 tickets are served in order of arrival, writes before reads
    barriers     answers that need proof that this node still leads (`barriers.py`)
    followers    an object that follows the progress of followers, or nothing if only Raft's
                 majority counts
    stop, follow, close
                 this node no longer leads. The replica then calls `Machine.resign`, which calls
                 `fail` to refuse the tickets that wait here

The machine hands in `refuse`, which answers a ticket that another node leads.
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
    """Follows the progress of a leader's followers: the in-sync rule of a partition."""

    def begin(self, now: Micros, log_end: LogIndex, /) -> None:
        """A term begins; `log_end` is the last index before its own first entry."""

    def note(self, follower: NodeId, match: LogIndex, log_end: LogIndex, now: Micros, /) -> None:
        """The follower's log equals the leader's up to `match`; the leader's ends at `log_end`."""

    def contact(self, follower: NodeId, at: Micros, /) -> None:
        """The follower was alive and followed at `at`, which may be in the past."""


class _Uncounted:
    """For a machine for which only Raft's majority counts."""

    def begin(self, now: Micros, log_end: LogIndex) -> None:
        """Nothing to do."""

    def note(self, follower: NodeId, match: LogIndex, log_end: LogIndex, now: Micros) -> None:
        """Nothing to do."""

    def contact(self, follower: NodeId, at: Micros) -> None:
        """Nothing to do."""


class Waiting(NamedTuple):
    """A ticket in the opening wait, and the function that serves it afterwards."""

    ticket: Ticket
    serve: Callable[[Matched], None]


class Leadership:
    """See the module's docstring. `counters`: where its events are counted."""

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
        """The leader; `NO_NODE` if none is known."""
        self.term: Term = 0
        """The term of the leader."""
        self.term_start: LogIndex = 0
        """While this node leads: the index of the first entry of its term."""
        self.synced = False
        """Whether this node leads, and everything that earlier terms replicated is applied."""
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
        """This node no longer leads. True: it led until now."""
        was_leading, self.leading, self.synced = self.leading, False, False
        return was_leading

    def follow(self, leader: NodeId, term: Term) -> bool:
        """This node follows `leader`, or `NO_NODE` if none is known. True: it led until now."""
        self._counters.step_downs += self.leading
        self.leader, self.term = leader, term
        return self.stop()

    def close(self) -> bool:
        """The replica ends, because its node stops or its topic is deleted; that does not count as
        a step-down. True: it led until now."""
        self.leader = NO_NODE
        return self.stop()

    # --- the opening wait ---------------------------------------------------------------------

    def wait(
        self, ticket: Ticket, serve: Callable[[Matched], None], *, reads: bool = False
    ) -> None:
        """Call `serve(ticket)` when the opening wait is over, unless the ticket is answered before.
        This node leads and is not synced. `reads`: the ticket only reads."""
        (self._readers if reads else self._waiting).append(Waiting(ticket, serve))

    def _take_waiting(self) -> list[Waiting]:
        waiting = [*self._waiting, *self._readers]
        self._waiting.clear()
        self._readers.clear()
        return waiting

    def opens(self, applied: LogIndex) -> bool:
        """Whether the opening wait ends now that entries up to `applied` are applied."""
        return self.leading and not self.synced and applied >= self.term_start

    def open(self) -> None:
        """End the opening wait: serve the tickets that waited."""
        self.synced = True
        for each in self._take_waiting():
            if not each.ticket.done:
                each.serve(each.ticket)

    # --- barriers -----------------------------------------------------------------------------

    def take_barriers(self) -> int:
        """How many barriers to start now; each ends in one call of `barriers.ended`, in order."""
        wanted = self.barriers.take()
        self._counters.barriers += wanted
        return wanted

    # --- followers ----------------------------------------------------------------------------

    def follower_progress(
        self, follower: NodeId, match: LogIndex, log_end: LogIndex, now: Micros
    ) -> None:
        """The follower's log equals this one up to `match`; this one ends at `log_end`."""
        self._followers.note(follower, match, log_end, now)
        if self._noticed is not None:
            self._noticed(now)

    def follower_contact(self, follower: NodeId, at: Micros) -> None:
        """The follower was alive and followed at `at`, which may be in the past."""
        self._followers.contact(follower, at)

    def notice_followers(self, call: Callable[[Micros], None] | None) -> None:
        """From now on call `call(now)` after each progress of a follower. None: stop calling."""
        self._noticed = call

    # --- waiting tickets ----------------------------------------------------------------------

    def overdue(self, now: Micros) -> None:
        """Refuse tickets whose deadline has passed: none of them has a place in the log yet."""
        for waiting in (self._waiting, self._readers):
            for each in [each for each in waiting if each.ticket.deadline <= now]:
                waiting.remove(each)
                self._refuse(each.ticket)
        self.barriers.overdue(now)

    def fail(self) -> None:
        """This node no longer leads: refuse all tickets that wait here."""
        for each in self._take_waiting():
            self._refuse(each.ticket)
        self.barriers.fail()

    def open_tickets(self) -> Iterator[Ticket]:
        """Every ticket of this part that waits for its answer."""
        for each in chain(self._waiting, self._readers):
            yield each.ticket
        yield from self.barriers.open_tickets()
