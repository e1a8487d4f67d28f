"""What the parts of one partition share: its offsets, its leadership, and its answers.

`admission.py` decides whether and in which order a batch enters the log, `reads.py` what a reader
may see, `partition.py` what a committed entry changes. All of them use this one object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakMethod

from ottla.broker.counters import Counters
from ottla.broker.errors import ErrorCode
from ottla.broker.partition.in_sync import InSync
from ottla.broker.profiles.profile import Profile
from ottla.broker.turn.leadership import Leadership
from ottla.broker.turn.looks import Looks
from ottla.broker.turn.machine import Outbox
from ottla.broker.turn.tickets import FetchTicket, ProduceTicket, Ticket
from ottla.log.inspection import DEFAULT_RULES, RecordRules
from ottla.log.offset_index import OffsetIndex
from ottla.log.types import Millis, Offset, RecordBatch
from ottla.raft.types import GroupId, LogIndex, Micros, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSettings:
    """The settings of one partition: those of the cluster, overridden by those of the topic."""

    group: GroupId
    node: NodeId
    profile: Profile
    max_message_bytes: int
    min_insync_replicas: int
    leader_queue_bytes: int
    """Limit of the bytes that are proposed and not yet committed; more wait in the leader queue."""
    max_producers: int
    producer_expiry: Micros
    counters: Counters
    records: RecordRules = DEFAULT_RULES
    """What the topic requires of the records in a batch."""
    segment_bytes: int = 1 << 30
    """Limit of a batch's size, as in Kafka, which stores a batch in one segment. (There are no
    segments here.)"""
    looks: Looks = field(default_factory=Looks)
    """How much checking of records is allowed before others may run; shared by the whole node."""


class ClockReading(NamedTuple):
    """The wall clock at one time of the driver's clock."""

    wall_ms: Millis
    at: Micros


class PartitionState:
    """One per partition replica. Invariant: log start <= high watermark <= log end."""

    __slots__ = (
        "__weakref__",
        "applied",
        "clock",
        "copies",
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
        """Its term is Kafka's leader epoch."""
        # `apply` of partition.py writes these.
        self.applied: LogIndex = 0
        self.high_watermark: Offset = 0
        self.shown: LogIndex = 0
        """The last entry that readers may see; the high watermark is its end offset. Less than
        `applied` while too few replicas are in sync."""
        self.log_start_offset: Offset = 0
        self.clock: ClockReading | None = None
        """When the last batch arrived. Only where producers expire by the times of records."""
        self.copies: list[ProduceTicket] = []
        """Duplicates that wait until readers see their original (`accept_copy`)."""
        self.outbox = Outbox()

    def answer(self, ticket: Ticket, error: ErrorCode) -> None:
        """Answer the ticket with `error`, unless it is answered already."""
        if not ticket.done:
            ticket.done = True
            ticket.error = error
            self.outbox.now.append(ticket)

    def refuse(self, ticket: ProduceTicket, error: ErrorCode) -> None:
        """Refuse a batch, with the log start offset.

        By `log_start_offset` a client tells data deleted by retention from lost data (K-CODES).
        """
        if not ticket.done:
            ticket.log_start_offset = self.log_start_offset
            self.answer(ticket, error)

    def time_out(self, ticket: ProduceTicket) -> None:
        """Refuse a batch whose time is up. It may still be stored. If the profile says so, the
        leader of a producer's batch resigns."""
        if not ticket.done:
            self.refuse(ticket, ErrorCode.REQUEST_TIMED_OUT)
            if ticket.in_flight is not None:
                self.fail_producer()

    def fail_producer(self) -> None:
        """A batch of a producer failed, and its successors in flight were judged as if it had
        not. If the profile says so, the leader resigns (RP-RESIGNS)."""
        if self.settings.profile.resigns_on_failure:
            self.outbox.resigns = self.leadership.term

    def accept(self, ticket: ProduceTicket, base_offset: Offset) -> None:
        """Answer success with the batch's base offset."""
        if not ticket.done:
            ticket.done = True
            ticket.base_offset = base_offset
            ticket.log_start_offset = self.log_start_offset
            self.outbox.now.append(ticket)

    def accept_copy(self, ticket: ProduceTicket, base_offset: Offset) -> None:
        """Answer success to a duplicate, with its original's base offset. If acks=all waits for all
        replicas in sync, it waits until readers see the original (K-ACKS)."""
        if ticket.acks == -1 and self.settings.profile.waits_for_all_in_sync and not ticket.done:
            ticket.base_offset = base_offset
            if base_offset + ticket.batch.last_offset_delta >= self.high_watermark:
                self.copies.append(ticket)
                return
        self.accept(ticket, base_offset)

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
        """Leadership was lost while the batch waited for its commit: answer NOT_LEADER_OR_FOLLOWER
        with its base offset in this log."""
        if not ticket.done:
            ticket.base_offset = base_offset
            ticket.log_start_offset = self.log_start_offset
            self.not_leader(ticket)

    def place_copy(self, ticket: ProduceTicket, original: RecordBatch) -> None:
        """A copy of a batch in the log is answered with that batch's place, also if its time is up
        or leadership is lost (K-FIELDS)."""
        if not ticket.done:
            ticket.base_offset = original.base_offset
            ticket.log_append_time = original.max_timestamp

    def below_minimum(self, now: Micros) -> bool:
        """Whether fewer replicas are in sync than min.insync.replicas requires (promise-K2)."""
        return self.in_sync.below_minimum(self.settings.min_insync_replicas, now)

    def check_offsets(self) -> None:
        """Assert the order of the offsets, on which every reader relies."""
        start, high, end = self.log_start_offset, self.high_watermark, self.index.next_offset
        assert start <= high <= end, f"log start {start} <= high watermark {high} <= log end {end}"


def _keeping_nobody(refuse: Callable[[Ticket], None]) -> Callable[[Ticket], None]:
    """As `refuse`, but with a weak reference to its object. So a partition and its leadership do
    not keep each other alive, and a dropped partition needs no garbage collection."""
    found = WeakMethod(refuse)

    def refuse_while_there(ticket: Ticket) -> None:
        call = found()
        if call is not None:
            call(ticket)

    return refuse_while_there
