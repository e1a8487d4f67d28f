"""Fetch (key 1), versions 4 to 12. Answers as measured on Apache Kafka 4.3.1 (K-FETCH).

* Only committed records are visible. There are no transactions, so the last stable offset is the
  high watermark.
* *Limits*: the first batch of the answer is always complete, even if it exceeds the limits
  (KIP-74). Further bytes are cut at `partition_max_bytes` and `max_bytes`, also in the middle of a
  batch. The first batch of another partition is complete or left out. With a negative
  `partition_max_bytes`, a partition that has records is UNKNOWN_SERVER_ERROR; a negative
  `max_bytes` does the same to the first partition, and counts as 0 for the others. An answer has at
  most `MOST_BYTES` (Kafka's `fetch.max.bytes`) and `MOST_BATCHES`.
* *Partitions*: if a partition is named twice, the last entry counts, and it is answered once. A
  partition that does not exist is answered with error 3, after the others. It does not end the wait
  for other partitions.
* *Waiting*: if there are fewer than `min_bytes`, the request waits until a high watermark moves, at
  most `max_wait`. An error of a partition that exists ends the wait, and so does a diverging epoch.
  If records of that partition were read before the error (its leader resigned while the request
  waited, or its topic was deleted), they are sent, and the next request gets the error.
* *Epochs*: `current_leader_epoch` must be the leader's. `last_fetched_epoch` (version 12) must be
  in the leader's log up to the offset asked for. Else the answer has no records but the diverging
  epoch (KIP-595), or OFFSET_OUT_OF_RANGE if the log has no such epoch. A value below 0 means
  *none*.
* *Storage*: if the store cannot read, the answer is KAFKA_STORAGE_ERROR, and then the node stops.
* *Isolation*: levels 0 and 1 read the same, but with 1 the list of aborted transactions is empty
  instead of null. Another level is UNKNOWN_SERVER_ERROR for the request and for each of its
  entries, if any of its partitions exists.
* *Sessions* (KIP-227, from version 7 on) are not kept. A client that asks for one gets a full
  answer with session id 0, which means *none*. A request with a session id is
  FETCH_SESSION_ID_NOT_FOUND.
* A read as a follower (replica_id >= 0) is NOT_LEADER_OR_FOLLOWER, because replicas use Raft.

A request works in *rounds*. Each round asks every partition what may be read from where the last
round stopped, and reads it. Between two rounds the request watches the high watermarks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from operator import attrgetter

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import ANY_EPOCH, FetchTicket, WatchTicket
from ottla.broker.wire.answers import FetchAnswer, Lazily, PartitionFetched, TopicFetched
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.api.fetch_part import Part
from ottla.broker.wire.api.rounds import leadership_deadline
from ottla.broker.wire.host import Host, absent_partition
from ottla.broker.wire.requests import FetchPartition, FetchRequest
from ottla.log.errors import CompactedError, StoreError
from ottla.log.types import EpochStart, RecordBatch
from ottla.raft.types import EntryKind, LogIndex, Micros

MOST_BYTES = 55 << 20
"""Kafka's default of `fetch.max.bytes`. The size of an answer must fit into an int32."""
MOST_BATCHES = 20_000
"""Most batches in an answer: 1.4 MB of the smallest batches. More would take too long to send."""
BATCHES_A_UNIT = 10
"""Reading this many batches costs one unit (`ottla.broker.event_loop.slices`)."""
READ_BYTES = 1 << 18
"""Bytes read in one step."""
BYTES_A_UNIT = 1 << 15
"""Reading this many bytes costs one unit (`ottla.broker.event_loop.slices`)."""
TICKET_UNITS = 10
"""The cost of asking or watching one partition, including the turn of its replica."""
WATCHES_AT_ONCE = 8
WATCH_STEP: Micros = 20_000
"""At most `WATCHES_AT_ONCE` watches have the same deadline; the next ones have deadlines
`WATCH_STEP` later. Each watch that ends gives its replica a turn, and hundreds of turns at once
take 50 ms."""
READ_UNCOMMITTED = 0
ISOLATION_LEVELS = (READ_UNCOMMITTED, 1)
"""read_uncommitted, read_committed."""
FULL_FETCH_EPOCHS = (0, -1)
"""Session epochs of a full fetch: a new session, or none."""


def handle(request: FetchRequest, call: Call) -> None:
    """Answer at once, or when there are enough records."""
    if call.version >= 7 and request.session_epoch not in FULL_FETCH_EPOCHS:
        call.answer(FetchAnswer((), ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        return
    call.run(_begin(request, call))


def _begin(request: FetchRequest, call: Call) -> Steps:
    fetch = _Fetch(request, call)
    yield from fetch.locate(request)
    if fetch.parts and request.isolation_level not in ISOLATION_LEVELS:
        _refuse(request, call)
    else:
        yield from fetch.round()


def _refuse(request: FetchRequest, call: Call) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR

    def refused(wanted: FetchPartition) -> PartitionFetched:
        return PartitionFetched(wanted.partition, error, aborted_is_null=False)

    topics = [TopicFetched(each.topic, Lazily(each.partitions, refused)) for each in request.topics]
    call.answer(FetchAnswer(topics, error))


class _Fetch:
    """One request in progress."""

    def __init__(self, request: FetchRequest, call: Call):
        host = call.host
        self.call = call
        self.max_bytes: int = min(request.max_bytes, MOST_BYTES)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.deadline = host.now() + max(request.max_wait, 0)
        self.proof_deadline = leadership_deadline(host)
        self.parts: list[Part] = []
        self.absent: list[Part] = []
        """Partitions that do not exist."""
        self.readable: list[tuple[Part, LogIndex, LogIndex]] = []
        """What this round may read: a partition, and the indexes of its first and last entry."""
        self.bytes = self.batches = 0
        self.crowded = False
        """A batch did not fit into `max_bytes`, so the answer is full."""
        self.interrupted = False
        """A partition ends the request: do not wait for more."""
        self.undecided = 0
        self.watches: list[WatchTicket] = []
        self.cancel_timer: Callable[[], None] | None = None
        call.on_cancel(self.stop_waiting)

    def locate(self, request: FetchRequest) -> Steps:
        """Find the replicas of all partitions. If one is named twice, the last entry counts."""
        named: dict[tuple[str, int], Part] = {}
        for topic in request.topics:
            if not topic.partitions:
                yield 1
            for wanted in topic.partitions:
                named[topic.topic, wanted.partition] = Part(topic.topic, wanted)
                yield 1
        host = self.call.host
        for part in named.values():
            exists = _locate(part, host, request)
            (self.parts if exists else self.absent).append(part)
            yield 1
        most = sum(part.limit for part in self.parts)
        self.call.charge(max(0, min(self.max_bytes, most)))

    def round(self) -> Steps:
        """Ask every partition that may have more records."""
        host = self.call.host
        asked = [part for part in self.parts if part.replica and not part.error and not part.full]
        self.undecided = len(asked) + 1  # this method itself counts as one
        decided = self.call.guarded(self.decided)
        for part in asked:
            ticket = FetchTicket(
                part.next_offset,
                part.limit,
                part.epoch,
                decided,
                self.deadline,
                proof_deadline=self.proof_deadline,
                owner=part,
                last_fetched_epoch=part.last_fetched_epoch,
            )
            assert part.replica is not None
            host.submit(part.replica, ticket)
            yield TICKET_UNITS
        if asked:
            self.end()
        else:
            self.finish()

    def decided(self, ticket: FetchTicket) -> None:
        """One partition has answered what may be read."""
        part = ticket.owner
        assert isinstance(part, Part)
        part.leader_epoch = ticket.leader_epoch
        if ticket.error is ErrorCode.NONE:
            part.high_watermark = ticket.high_watermark
            part.log_start_offset = ticket.log_start_offset
            part.last_fetched_epoch = ANY_EPOCH
            if ticket.diverging is not None:
                self.diverge(part, ticket.diverging)
            elif ticket.first_index:
                self.readable.append((part, ticket.first_index, ticket.last_index))
        else:
            self.fail(part, ticket.error)
        self.end()

    def end(self) -> None:
        """One partition has answered, or all have been asked."""
        self.undecided -= 1
        if self.undecided == 0 and not self.call.finished:
            self.call.run(self.end_of_round())

    def fail(self, part: Part, error: ErrorCode) -> None:
        """This partition's error ends the request; records of it that were read before are sent.

        Waiting on would be a loop: a replica that no longer leads answers a watch at once.
        """
        host = self.call.host
        if part.batches:
            self.interrupted = True
        elif error is ErrorCode.NOT_LEADER_OR_FOLLOWER and not _exists(part, host):
            part.fail(absent_partition(host))  # deleted meanwhile
        else:
            part.fail(error)

    def diverge(self, part: Part, end: EpochStart) -> None:
        """The reader's log differs from this one: answer that, and end the request."""
        part.diverging = end
        part.aborted_is_null = True
        self.interrupted = True

    def read(self, part: Part, index: LogIndex, last: LogIndex) -> Steps:
        """Read entries `index .. last`, as many as the limits allow."""
        assert part.replica is not None
        limit = min(part.limit, self.max_bytes) if part is self.parts[0] else part.limit
        if limit < 0:
            part.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        while index <= last and not part.full:
            try:
                room = min(max(self.room(part), 0), READ_BYTES)
                entries = self.call.host.read(part.replica.group, index, last, room)
            except CompactedError:
                self.fail(part, ErrorCode.OFFSET_OUT_OF_RANGE)
                return
            except StoreError:
                self.fail(part, ErrorCode.KAFKA_STORAGE_ERROR)
                return
            before = self.bytes
            for entry in entries:
                if entry.kind is EntryKind.BATCH and not part.full:
                    assert isinstance(entry.payload, RecordBatch)
                    self.take(part, entry.payload)
            index = entries[-1].index + 1
            yield 1 + len(entries) // BATCHES_A_UNIT + (self.bytes - before) // BYTES_A_UNIT

    def room(self, part: Part) -> int:
        """How many more bytes may be sent of this partition."""
        return min(part.limit - part.bytes, self.max_bytes - self.bytes)

    def take(self, part: Part, batch: RecordBatch) -> None:
        """Add this batch to the answer, or as much of it as there is room for."""
        size, room = len(batch), self.room(part)
        if self.batches == MOST_BATCHES:
            part.full = self.crowded = True
            return
        if size > room and self.bytes:
            part.full = True
            self.crowded = self.crowded or size > self.max_bytes - self.bytes
            # Kafka replaces an incomplete batch, and then has no list of aborted transactions.
            part.aborted_is_null = part.aborted_is_null or (room > 0 and not part.batches)
            size = max(room, 0) if part.batches else 0
            if size:
                part.cut = batch, size
        else:
            part.batches.append(batch)
            self.batches += 1
            part.next_offset = batch.last_offset + 1
        part.bytes += size
        self.bytes += size

    def end_of_round(self) -> Steps:
        """Read what the partitions allow. Then answer, or wait for more."""
        readable, self.readable = self.readable, []
        for part, first, last in readable:
            yield from self.read(part, first, last)
        enough = self.bytes >= self.min_bytes or self.crowded
        failed = self.interrupted or any(part.error for part in self.parts)
        if enough or failed or self.call.host.now() >= self.deadline:
            self.finish()
        else:
            yield from self.wait()

    def wait(self) -> Steps:
        """Watch the high watermarks until one moves or the deadline has passed.

        The timer ends the wait. A watch has its own deadline, so that a replica does not keep it
        for ever.
        """
        host = self.call.host
        self.cancel_timer = host.call_at(self.deadline, self.call.guarded(self.finish))
        moved = self.call.guarded(self.moved)
        watches = self.watches = []
        for part in self.parts:
            if part.replica is None or part.full:
                continue
            deadline = self.deadline + len(watches) // WATCHES_AT_ONCE * WATCH_STEP
            watch = WatchTicket(part.high_watermark, moved, deadline, part)
            watches.append(watch)
            host.submit(part.replica, watch)
            if self.watches is not watches:
                return  # A watch was answered at once: the next round has begun.
            yield TICKET_UNITS
            if self.watches is not watches:
                return

    def moved(self, watch: WatchTicket) -> None:
        """A high watermark has moved, the leadership is lost, or the deadline has passed."""
        if not watch.cancelled:
            self.stop_waiting()
            self.call.run(self.round())

    def stop_waiting(self) -> None:
        """Cancel the watches and the timer."""
        for watch in self.watches:
            watch.cancelled = True
        self.watches = []
        if self.cancel_timer is not None:
            self.cancel_timer()
            self.cancel_timer = None

    def finish(self) -> None:
        """Answer with what was read."""
        self.stop_waiting()
        found = groupby([*self.parts, *self.absent], key=attrgetter("topic"))
        topics = [TopicFetched(topic, Lazily(list(each), Part.answer)) for topic, each in found]
        self.call.answer(FetchAnswer(topics))


def _exists(part: Part, host: Host) -> bool:
    topic = host.topics().get(part.topic)
    return topic is not None and 0 <= part.partition < len(topic.partitions)


def _locate(part: Part, host: Host, request: FetchRequest) -> bool:
    """Find the partition's replica, or set the error. False: the partition does not exist."""
    part.aborted_is_null = request.isolation_level == READ_UNCOMMITTED
    if not _exists(part, host):
        part.fail(absent_partition(host))
        part.aborted_is_null = part.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return part.aborted_is_null
    part.replica = host.replica(part.topic, part.partition)
    if part.replica is None or request.replica_id >= 0:
        part.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return True
