"""The seam between consensus and what is agreed on: a replica drives one `Machine`.

`broker/turn/replica.py` puts a `RaftCore` and a `Machine` together; `Partition` (Kafka semantics)
and `Controller` (topics, producer ids) are the two machines. Both are pure: calls in, values out,
no I/O, no clock, no randomness.

Order of calls in one turn: `submit` for each ticket of the inbox, `tick` when a deadline passed,
then as often as something moves: `take_proposals` and `proposed` (leader only), `appended` or
`truncated`, `apply`. `leading` / `not_leading` come between these when the role changes. Tickets
that are done lie in `outbox`; the replica moves them into its `Effects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.raft.types import Entry, LogIndex, Micros, NodeId, Proposal, Snapshot, Term


@dataclass(slots=True)
class Proposals:
    """What a machine wants appended, and the term in which its conditions were checked."""

    expected_term: Term
    items: list[Proposal]


class Outbox:
    """Tickets that are done; the replica takes the lists away at the end of its turn."""

    __slots__ = ("after_append", "enqueued", "now")

    def __init__(self) -> None:
        self.now: list[Ticket] = []
        """Safe to answer at once."""
        self.after_append: list[Ticket] = []
        """acks=0 and 1: once the store has taken this turn's append."""
        self.enqueued: list[ProduceTicket] = []
        """Not done: `on_enqueued` is due, the place in the log is certain (promise-R1)."""


@dataclass(slots=True)
class Compaction:
    """The machine no longer needs entries up to `index`; `data` restores what they made."""

    index: LogIndex
    data: bytes


class Machine(Protocol):
    """A replicated state machine as a replica drives it."""

    outbox: Outbox
    compaction: Compaction | None
    """Set when a snapshot should be stored; the replica takes it and sets None."""

    @property
    def applied(self) -> LogIndex:
        """Index of the last entry applied."""

    @property
    def last_index(self) -> LogIndex:
        """Index of the last entry appended."""

    def submit(self, ticket: Ticket, now: Micros) -> None:
        """Take in one command."""

    def tick(self, now: Micros) -> None:
        """A deadline may have passed."""

    def deadline(self) -> Micros | None:
        """The next point in time at which `tick` has something to do."""

    def has_pending(self) -> bool:
        """Whether `take_proposals` or `take_barriers` may have something."""

    def take_proposals(self, inflight_bytes: int, now: Micros) -> Proposals | None:
        """What may be proposed now, given the bytes proposed and not yet committed."""

    def proposed(self, first: LogIndex | None) -> None:
        """Outcome of the last `take_proposals`: index of its first item, None when refused."""

    def appended(self, entries: Sequence[Entry]) -> None:
        """These entries are now the tail of the local log (own proposals included)."""

    def truncated(self, first: LogIndex) -> None:
        """Entries from `first` on are gone."""

    def apply(self, entries: Sequence[Entry], now: Micros) -> None:
        """These entries are committed; called once for each, in log order."""

    def take_barriers(self) -> int:
        """How many leadership barriers to start now; each ends in one `barrier_done`, in order."""

    def barrier_done(self, confirmed: bool, now: Micros) -> None:
        """The oldest barrier ended; `confirmed`: this node still led after it was asked for."""

    def follower_progress(self, follower: NodeId, match: LogIndex, now: Micros) -> None:
        """Leading: the follower's log is known to equal ours up to `match`."""

    def follower_contact(self, follower: NodeId, at: Micros) -> None:
        """Leading: the follower was alive and following at `at`, maybe some time ago."""

    def leading(self, term: Term, term_start: LogIndex, now: Micros) -> None:
        """This node leads `term`, whose first entry is `term_start`."""

    def not_leading(self, leader: NodeId, term: Term, now: Micros) -> None:
        """This node does not lead; `leader` is 0 while nobody is known to."""

    def close(self) -> None:
        """The replica ends: every open ticket is answered, and nobody is known to lead."""

    def restore(self, snapshot: Snapshot, now: Micros) -> None:
        """Replace everything by this snapshot; what counts time starts at `now`."""
