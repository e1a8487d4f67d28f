"""The seam between consensus and what is agreed on: a replica drives one `Machine`.

`broker/replica.py` puts a `RaftCore` and a `Machine` together; `Partition` (Kafka semantics) and
`Controller` (topics, producer ids) are the two machines. Both are pure: calls in, values out, no
I/O, no clock, no randomness.

Order of calls in one turn: `submit` for each ticket of the inbox, `tick` when a deadline passed,
then as often as something moves: `take_proposals` and `proposed` (leader only), `appended` or
`truncated`, `apply`. `leading` / `not_leading` come between these when the role changes. Tickets
that are done lie in `answers` (safe now) or `answers_after_append` (acks=1: only once the turn's
append was taken by the store); the replica moves both into its `Effects`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.broker.commands import Ticket
from ottla.raft.types import Entry, LogIndex, Micros, NodeId, Proposal, Snapshot, Term


@dataclass(slots=True)
class Proposals:
    """What a machine wants appended, and the term in which its conditions were checked."""

    expected_term: Term
    items: list[Proposal]


@dataclass(slots=True)
class Compaction:
    """The machine no longer needs entries up to `index`; `data` restores what they made."""

    index: LogIndex
    data: bytes


class Machine(Protocol):
    """A replicated state machine as a replica drives it."""

    answers: list[Ticket]
    answers_after_append: list[Ticket]
    barriers_wanted: int
    """How many leadership barriers the machine asks for; the replica sets it back to 0 and calls
    `barrier_done` once for each, in order."""
    compaction: Compaction | None
    """Set when a snapshot should be stored; the replica takes it and sets None."""

    def submit(self, ticket: Ticket, now: Micros) -> None:
        """Take in one command."""

    def tick(self, now: Micros) -> None:
        """A deadline may have passed."""

    def deadline(self) -> Micros | None:
        """The next point in time at which `tick` has something to do."""

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

    def barrier_done(self, confirmed: bool, now: Micros) -> None:
        """The oldest barrier ended; `confirmed`: this node still led after it was asked for."""

    def leading(self, term: Term, term_start: LogIndex, now: Micros) -> None:
        """This node leads `term`, whose first entry is `term_start`."""

    def not_leading(self, leader: NodeId, term: Term, now: Micros) -> None:
        """This node does not lead; `leader` is 0 while nobody is known to."""

    def restore(self, snapshot: Snapshot) -> None:
        """Replace everything by this snapshot."""
