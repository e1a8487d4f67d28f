"""What the parts of one partition share: its offsets, its role, and the answers on their way out.

A partition is split by question: `admission.py` decides whether and in which order a batch enters
the log, `reads.py` what a reader may see, `partition.py` what a committed entry changes. All three
look at this one record; each field names the part that writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakMethod

from ottla.broker.counters import Counters
from ottla.broker.errors import ErrorCode
from ottla.broker.partition.in_sync import InSync
from ottla.broker.turn.leadership import Leadership
from ottla.broker.turn.looks import Looks
from ottla.broker.turn.machine import Outbox
from ottla.broker.turn.tickets import FetchTicket, ProduceTicket, Ticket
from ottla.idempotency.profiles import Profile
from ottla.log.inspection import DEFAULT_RULES, RecordRules
from ottla.log.offset_index import OffsetIndex
from ottla.log.types import Offset
from ottla.raft.types import GroupId, LogIndex, Micros, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSettings:
    """The settings one partition obeys: the cluster's, overridden by the topic's."""

    group: GroupId
    node: NodeId
    profile: Profile
    max_message_bytes: int
    min_insync_replicas: int
    leader_queue_bytes: int
    """Bytes proposed and not yet committed; more wait in the leader queue."""
    max_producers: int
    producer_expiry: Micros
    counters: Counters
    records: RecordRules = DEFAULT_RULES
    """What is asked of the records in a batch."""
    segment_bytes: int = 1 << 30
    """No batch may be larger, though there are no segments: Kafka could not store it in one."""
    looks: Looks = field(default_factory=Looks)
    """How much of them may be looked into before others have their turn: the node's."""


class PartitionState:
    """One record per partition replica; invariant: log start <= high watermark <= log end."""

    __slots__ = (
        "__weakref__",
        "applied",
        "high_watermark",
        "in_sync",
        "index",
        "leadership",
        "log_start_offset",
        "outbox",
        "settings",
        "shown",
    )

    def __init__(self, settings: PartitionSettings, index: OffsetIndex, in_sync: InSync):
        self.settings = settings
        self.index = index
        self.in_sync = in_sync
        self.leadership = Leadership(
            _keeping_nobody(self.not_leader), followers=in_sync, counters=settings.counters
        )
        """Its term is Kafka's leader epoch: the one conversion."""
        # Progress: written by partition.py on apply.
        self.applied: LogIndex = 0
        self.high_watermark: Offset = 0
        self.shown: LogIndex = 0
        """The last entry that readers may see; the high watermark stands behind it. Less than
        `applied` while too few replicas are in sync."""
        self.log_start_offset: Offset = 0
        self.outbox = Outbox()

    def answer(self, ticket: Ticket, error: ErrorCode) -> None:
        """The ticket is done with this outcome; the first outcome stands."""
        if not ticket.done:
            ticket.done = True
            ticket.error = error
            self.outbox.now.append(ticket)

    def refuse(self, ticket: ProduceTicket, error: ErrorCode) -> None:
        """Refuse a batch that changed nothing, with the log start a client decides by.

        `log_start_offset` tells "state lost by retention" from "data lost" (K-CODES).
        """
        if not ticket.done:
            ticket.log_start_offset = self.log_start_offset
            self.answer(ticket, error)

    def accept(self, ticket: ProduceTicket, base_offset: Offset) -> None:
        """Answer success with the batch's place in the log."""
        if not ticket.done:
            ticket.done = True
            ticket.base_offset = base_offset
            ticket.log_start_offset = self.log_start_offset
            self.outbox.now.append(ticket)

    def not_leader(self, ticket: Ticket) -> None:
        """Answer NOT_LEADER_OR_FOLLOWER, naming the leader if one is known."""
        if ticket.done:
            return
        if isinstance(ticket, ProduceTicket | FetchTicket):
            leadership = self.leadership
            ticket.leader = 0 if leadership.leading else leadership.leader
            ticket.leader_epoch = leadership.term
        self.answer(ticket, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def lost(self, ticket: ProduceTicket, base_offset: Offset) -> None:
        """Leadership went while the batch waited for its commit: say where it lay in this log."""
        if not ticket.done:
            ticket.base_offset = base_offset
            ticket.log_start_offset = self.log_start_offset
            self.not_leader(ticket)

    def below_minimum(self, now: Micros) -> bool:
        """Fewer replicas in sync than min.insync.replicas asks for (promise-K2)."""
        return self.in_sync.below_minimum(self.settings.min_insync_replicas, now)

    def check_offsets(self) -> None:
        """The order every reader relies on; broken, nothing may be served any more."""
        start, high, end = self.log_start_offset, self.high_watermark, self.index.next_offset
        assert start <= high <= end, f"log start {start} <= high watermark {high} <= log end {end}"


def _keeping_nobody(refuse: Callable[[Ticket], None]) -> Callable[[Ticket], None]:
    """The same, for a part of whom it belongs to: the two do not keep each other alive, so a
    partition that is dropped leaves nothing to the collector of cycles."""
    found = WeakMethod(refuse)

    def refuse_while_there(ticket: Ticket) -> None:
        call = found()
        if call is not None:
            call(ticket)

    return refuse_while_there
