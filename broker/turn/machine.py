"""`Machine`: the interface between a replica and its replicated state machine.

`broker/turn/replica.py` joins a `RaftCore` and a `Machine`. The two machines are `Partition` (Kafka
semantics) and `Controller` (topics, producer ids). Both have no I/O, no clock and no randomness.

Calls in one turn: `submit` for each ticket of the inbox; then `take_proposals` and `proposed` (on
the leader) and `apply`, again as long as something changes; `tick` when a deadline has passed. The
machine puts finished tickets into its `outbox`, and the replica moves them into its `Effects`.

**Leading.** The replica keeps the machine's `leadership` up to date, and the machine reads it. When
a leadership ends, the replica calls `resign`, because waiting tickets must be answered.

**Entries that are not committed.** A machine gets entries when they are committed. A machine that
also needs the uncommitted entries of its log, as a partition does to give out offsets, is a
`LogWatcher`, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.broker.turn.effects import Effects
from ottla.broker.turn.leadership import Leadership
from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.raft.types import Entry, LogIndex, Micros, Proposal, Snapshot, Term


@dataclass(slots=True)
class Proposals:
    """What a machine wants to append, and the term in which it decided that."""

    expected_term: Term
    items: list[Proposal]


@dataclass(slots=True)
class Compaction:
    """A snapshot: `data` replaces the entries up to `index`, which the machine no longer needs."""

    index: LogIndex
    data: bytes


class Outbox:
    """Finished tickets and a snapshot of a machine; its replica takes them at the end of a turn."""

    __slots__ = ("after_append", "compaction", "enqueued", "now", "resigns")

    def __init__(self) -> None:
        self.now: list[Ticket] = []
        """Tickets to answer at once."""
        self.after_append: list[Ticket] = []
        """Tickets (acks=0 and 1) to answer once the store has taken this turn's append."""
        self.enqueued: list[ProduceTicket] = []
        """Tickets whose place in the log is certain (promise-R1): `on_enqueued` is due. They are
        not answered yet."""
        self.compaction: Compaction | None = None
        """A snapshot to store."""
        self.resigns: Term = 0
        """The machine resigns the leadership of this term, which its answers tell of; 0: it does
        not."""

    def hand_over(self, effects: Effects) -> None:
        """Move the finished tickets into the effects of a turn."""
        if self.now:
            effects.answers, self.now = self.now, []
        if self.after_append:
            effects.answers_after_append, self.after_append = self.after_append, []
        if self.enqueued:
            effects.enqueued, self.enqueued = self.enqueued, []


class Machine(Protocol):
    """A replicated state machine, as its replica calls it."""

    leadership: Leadership
    outbox: Outbox

    def submit(self, ticket: Ticket, now: Micros) -> None:
        """Take one ticket."""

    def deadline(self) -> Micros | None:
        """When `tick` has something to do next; None: there is no such time."""

    def tick(self, now: Micros) -> None:
        """Do what is due at `now`."""

    def has_pending(self) -> bool:
        """Whether `take_proposals` may have something."""

    def take_proposals(self, inflight_bytes: int, now: Micros) -> Proposals | None:
        """What to propose now. `inflight_bytes`: bytes that are proposed and not yet committed."""

    def proposed(self, first: LogIndex | None) -> None:
        """The outcome of the last `take_proposals`: the index of its first item; None if it was
        refused."""

    def apply(self, entries: Sequence[Entry], now: Micros) -> None:
        """These entries are committed; called once for each, in log order."""

    def resign(self) -> None:
        """This node no longer leads: answer every open ticket, and drop all speculation."""

    def restore(self, snapshot: Snapshot, now: Micros) -> None:
        """Replace the whole state by this snapshot. Idle times start at `now`."""


class LogWatcher:
    """A machine that also follows the uncommitted entries of its log."""

    def appended(self, entries: Sequence[Entry]) -> None:
        """These entries were appended to the local log; its own proposals are among them."""

    def truncated(self, first: LogIndex) -> None:
        """Entries from `first` on were removed."""


NOBODY = LogWatcher()


def find_log_watcher(machine: Machine) -> LogWatcher:
    """The machine if it is a `LogWatcher`, else one that does nothing."""
    return machine if isinstance(machine, LogWatcher) else NOBODY
