"""The seam between consensus and what is agreed on: a replica drives one `Machine`.

`broker/turn/replica.py` puts a `RaftCore` and a `Machine` together; `Partition` (Kafka semantics)
and `Controller` (topics, producer ids) are the two machines. Both are pure: calls in, values out,
no I/O, no clock, no randomness.

Order of calls in one turn: `submit` for each ticket of the inbox, `tick` when a deadline passed,
then as often as something moves: `take_proposals` and `proposed` (leader only), `apply`. What is
done lies in the `outbox`; the replica moves it into its `Effects`.

**Leading.** The replica keeps the machine's `leadership` up to date; the machine asks it. Only when
a leadership ends is the machine called (`resign`), for then those who wait must be answered.

**What is not committed.** A machine is told of entries when they are committed. One that decides by
what lies in its log before that, as a partition gives offsets, is a `LogWatcher` as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.broker.turn.leadership import Leadership
from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.raft.types import Entry, LogIndex, Micros, Proposal, Snapshot, Term


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


class Outbox:
    """What a machine leaves for its replica, which takes it away at the end of its turn."""

    __slots__ = ("after_append", "compaction", "enqueued", "now")

    def __init__(self) -> None:
        self.now: list[Ticket] = []
        """Safe to answer at once."""
        self.after_append: list[Ticket] = []
        """acks=0 and 1: once the store has taken this turn's append."""
        self.enqueued: list[ProduceTicket] = []
        """Not done: `on_enqueued` is due, the place in the log is certain (promise-R1)."""
        self.compaction: Compaction | None = None
        """A snapshot that should be stored."""


class Machine(Protocol):
    """A replicated state machine as a replica drives it."""

    leadership: Leadership
    outbox: Outbox

    def submit(self, ticket: Ticket, now: Micros) -> None:
        """Take in one command."""

    def deadline(self) -> Micros | None:
        """The next point in time at which `tick` has something to do."""

    def tick(self, now: Micros) -> None:
        """A deadline may have passed."""

    def has_pending(self) -> bool:
        """Whether `take_proposals` may have something."""

    def take_proposals(self, inflight_bytes: int, now: Micros) -> Proposals | None:
        """What may be proposed now, given the bytes proposed and not yet committed."""

    def proposed(self, first: LogIndex | None) -> None:
        """Outcome of the last `take_proposals`: index of its first item, None when refused."""

    def apply(self, entries: Sequence[Entry], now: Micros) -> None:
        """These entries are committed; called once for each, in log order."""

    def resign(self) -> None:
        """This node leads no more: answer every open ticket; what speculated, forgets."""

    def restore(self, snapshot: Snapshot, now: Micros) -> None:
        """Replace everything by this snapshot; what counts time starts at `now`."""


class LogWatcher:
    """A machine that is told what is in its log, committed or not."""

    def appended(self, entries: Sequence[Entry]) -> None:
        """These entries are now the tail of the local log (own proposals included)."""

    def truncated(self, first: LogIndex) -> None:
        """Entries from `first` on are gone."""


NOBODY = LogWatcher()


def find_log_watcher(machine: Machine) -> LogWatcher:
    """The machine, if it watches its log."""
    return machine if isinstance(machine, LogWatcher) else NOBODY
