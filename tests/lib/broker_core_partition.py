"""`PartitionDriver`: one `Partition` driven by hand, with the requests clients make of it.

Node 1 of three. `produce` and its like put a ticket in and hand it back; `answers` of the driver
tells which tickets are done. Time limits are `LONG` unless a test says otherwise.
"""

from __future__ import annotations

from broker_machine import MachineDriver
from ottla.broker.counters import Counters
from ottla.broker.errors import ErrorCode
from ottla.broker.partition.in_sync import InSync
from ottla.broker.partition.partition import Partition
from ottla.broker.partition.state import PartitionSettings
from ottla.broker.profiles.named import profile_named
from ottla.broker.turn.tickets import (
    ANY_EPOCH,
    DeleteRecordsTicket,
    EpochEndTicket,
    FetchTicket,
    ListOffsetsTicket,
    ProduceTicket,
    Ticket,
    WatchTicket,
)
from ottla.log.build import build_batch
from ottla.log.inspection import DEFAULT_RULES, NO_CLOCK, RecordRules
from ottla.log.record_batch import read_batch
from ottla.log.types import Millis, RecordBatch
from ottla.raft.types import Entry, EntryKind, LogIndex, Micros, NodeId

LONG: Micros = 60_000_000
LAG: Micros = 10_000_000
EXPIRY: Micros = 400_000_000
FULL = 1 << 30
"""So many bytes under way that the leader queue lets nothing through."""

NONE = ErrorCode.NONE
GAP = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
ELSEWHERE = ErrorCode.NOT_LEADER_OR_FOLLOWER
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


def ignore(_: Ticket) -> None:
    """What `on_done` does in tests that look at the outbox."""


def batch(
    producer_id: int = -1, sequence: int = -1, count: int = 1, epoch: int = 0, *, at: int = 0
) -> RecordBatch:
    """A batch as it comes from the wire; `at` is its timestamp."""
    data = build_batch(
        [b"v"] * count,
        producer_id=producer_id,
        producer_epoch=epoch if producer_id >= 0 else -1,
        base_sequence=sequence,
        base_timestamp=at,
    )
    parsed = read_batch(data)
    assert isinstance(parsed, RecordBatch), f"{parsed}"
    return parsed


def make_partition(
    *,
    queue_bytes: int = 1 << 20,
    min_insync: int = 1,
    max_producers: int = 100,
    voters: tuple[int, ...] = (1, 2, 3),
    profile: str = "reference",
    records: RecordRules = DEFAULT_RULES,
    node: NodeId = 1,
) -> Partition:
    """A fresh machine on a node; the driver leads as node 1."""
    settings = PartitionSettings(
        group=7,
        node=node,
        profile=profile_named(profile),
        max_message_bytes=10_000,
        min_insync_replicas=min_insync,
        leader_queue_bytes=queue_bytes,
        max_producers=max_producers,
        producer_expiry=EXPIRY,
        counters=Counters(),
        records=records,
    )
    return Partition(settings, InSync(LAG, voters, 1))


class PartitionDriver(MachineDriver[Partition]):
    """See the module's text."""

    def __init__(self, machine: Partition | None = None) -> None:
        super().__init__(machine or make_partition())

    def serve(self, term: int = 1) -> None:
        """Lead a term and serve: its first entry is committed."""
        self.lead(term)
        self.commit()

    # ---- requests

    def send(
        self,
        data: RecordBatch,
        *,
        acks: int = -1,
        within: Micros = LONG,
        staged: bool = False,
        wall_ms: Millis = NO_CLOCK,
    ) -> ProduceTicket:
        """Produce this batch. `staged`: its `on_enqueued` is wanted."""
        ticket = ProduceTicket(data, acks, ignore, self.now + within, wall_ms=wall_ms)
        if staged:
            ticket.on_enqueued = ignore
        self.submit(ticket)
        return ticket

    def produce(
        self,
        producer_id: int = -1,
        sequence: int = -1,
        count: int = 1,
        *,
        epoch: int = 0,
        acks: int = -1,
        within: Micros = LONG,
    ) -> ProduceTicket:
        """Produce `count` records from `sequence` on."""
        return self.send(batch(producer_id, sequence, count, epoch), acks=acks, within=within)

    def fetch(
        self,
        offset: int,
        *,
        epoch: int = ANY_EPOCH,
        last_epoch: int = ANY_EPOCH,
        within: Micros = LONG,
        proof_within: Micros | None = None,
    ) -> FetchTicket:
        """Read from `offset` on, behind a record of `last_epoch`."""
        proof = self.now + (within if proof_within is None else proof_within)
        ticket = FetchTicket(
            offset,
            1000,
            epoch,
            ignore,
            self.now + within,
            proof_deadline=proof,
            last_fetched_epoch=last_epoch,
        )
        self.submit(ticket)
        return ticket

    def list_offsets(self, timestamp: int, *, within: Micros = LONG) -> ListOffsetsTicket:
        """Ask for an offset by time."""
        ticket = ListOffsetsTicket(timestamp, ANY_EPOCH, ignore, self.now + within)
        self.submit(ticket)
        return ticket

    def epoch_end(self, epoch: int, *, within: Micros = LONG) -> EpochEndTicket:
        """Ask where a leader epoch ended."""
        ticket = EpochEndTicket(epoch, ANY_EPOCH, ignore, self.now + within)
        self.submit(ticket)
        return ticket

    def watch(self, beyond: int, *, within: Micros = LONG) -> WatchTicket:
        """Wait for the high watermark to pass `beyond`."""
        ticket = WatchTicket(beyond, ignore, self.now + within)
        self.submit(ticket)
        return ticket

    def delete_records(self, offset: int, *, within: Micros = LONG) -> DeleteRecordsTicket:
        """Move the log start."""
        ticket = DeleteRecordsTicket(offset, ignore, self.now + within)
        self.submit(ticket)
        return ticket

    # ---- what else happens

    def barrier(self, confirmed: bool) -> None:
        """The barriers asked for end this way."""
        for _ in range(self.machine.leadership.take_barriers()):
            self.machine.leadership.barriers.ended(confirmed)

    def progress(self, follower: NodeId, match: LogIndex) -> None:
        """A follower holds everything up to `match` and says so."""
        end = len(self.log)
        self.machine.leadership.follower_progress(follower, match, end, self.now)

    def hear_followers(self) -> None:
        """Both followers hold everything and say so."""
        for follower in (2, 3):
            self.progress(follower, len(self.log))

    def stored(self) -> list[RecordBatch]:
        """The batches in the log, committed or not."""
        batches = (each.payload for each in self.log if each.kind is EntryKind.BATCH)
        return [each for each in batches if isinstance(each, RecordBatch)]

    def ranges(self) -> list[tuple[int, int]]:
        """Producer id and first sequence of every batch in the log."""
        return [(each.producer_id, each.base_sequence) for each in self.stored()]

    def empty_entry(self, term: int) -> Entry:
        """The first entry of another leader, behind this log."""
        return Entry(len(self.log) + 1, term, EntryKind.EMPTY, b"")


def outcome(ticket: ProduceTicket) -> tuple[ErrorCode, int]:
    """Error and base offset; asserts that there is an outcome."""
    assert ticket.done, "the ticket has no answer yet"
    return ticket.error, ticket.base_offset
