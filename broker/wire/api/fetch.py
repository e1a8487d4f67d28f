"""Fetch (key 1), versions 4 to 12. Answers as measured on Apache Kafka 4.3.1 (K-FETCH).

* Only committed records are seen; the last stable offset is the high watermark, because there are
  no transactions.
* *Limits*: the first batch of the answer always comes whole, whatever the limits say (KIP-74);
  behind it the bytes are cut at `partition_max_bytes` and `max_bytes`, in the middle of a batch.
  The first batch of a further partition comes whole or not at all. With a negative limit whoever
  has something to read gets UNKNOWN_SERVER_ERROR; a negative `max_bytes` is 0 but for the first.
  Whatever is asked for, an answer holds at most `MOST_BYTES`, as with Kafka's `fetch.max.bytes`,
  and `MOST_BATCHES`.
* *Which partitions*: of one that is named twice the last entry counts, and one is answered. Those
  that do not exist are answered 3, behind the others, and do not count for anything else: while
  others are waited for, they wait too.
* *Waiting*: with less than `min_bytes` to give, the request waits for the high watermarks to move,
  at most `max_wait`. The error of a partition that exists is answered at once, and so is an epoch
  that diverges; where records of the partition were read before the error (its leader resigned
  while the request waited, its topic was deleted), it is these that are given at once, and the
  error is for the next request to hear.
* *Epochs*: `current_leader_epoch` must be the leader's, `last_fetched_epoch` (version 12) must have
  been in its log up to the offset asked for. Else there are no records but the diverging epoch
  (KIP-595), or OFFSET_OUT_OF_RANGE where the log knows only earlier ones. Below 0, each names none.
* *Storage*: what the store cannot give is KAFKA_STORAGE_ERROR, and the node stops behind it.
* *Isolation*: 0 and 1 see the same, but with 1 the list of aborted transactions is empty instead of
  null. Another level is UNKNOWN_SERVER_ERROR, for the request and for every entry as it was
  named, if any partition of it exists.
* *Sessions* (KIP-227, version 7 on) are refused politely: whoever asks for one gets a full answer
  with session id 0, which means "none", and goes on without; going on with a session id that was
  never given out is FETCH_SESSION_ID_NOT_FOUND.
* Reads as a follower (replica_id >= 0) are NOT_LEADER_OR_FOLLOWER: replicas replicate by Raft.

A request works in *rounds*: each asks every partition what may be seen from where the last round
stopped, and reads it; between two rounds it watches the high watermarks.
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
"""Kafka's default of `fetch.max.bytes`: so an answer's size fits its int32, and the memory."""
MOST_BATCHES = 20_000
"""So many of the smallest there are hold 1.4 MB, and more would cost their milliseconds each."""
BATCHES_A_UNIT = 10
"""Batches that cost a unit of the turn to read (`ottla.broker.event_loop.slices`)."""
READ_BYTES = 1 << 18
"""Read in one step."""
BYTES_A_UNIT = 1 << 15
"""Bytes that cost a unit of the turn to read (`ottla.broker.event_loop.slices`)."""
TICKET_UNITS = 10
"""What it costs to ask one partition, or to watch it, with the turn that its replica takes."""
WATCHES_AT_ONCE = 8
WATCH_STEP: Micros = 20_000
"""So many watches end together, the next ones by so much later: each wakes its replica. That must
be few also where the loop comes late: hundreds of them are a turn of 50 ms."""
READ_UNCOMMITTED = 0
ISOLATION_LEVELS = (READ_UNCOMMITTED, 1)
"""And read_committed."""
FULL_FETCH_EPOCHS = (0, -1)
"""Session epochs that ask for everything: a new session, or none."""


def handle(request: FetchRequest, call: Call) -> None:
    """Answer at once, or when there is enough."""
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
    """One request under way."""

    def __init__(self, request: FetchRequest, call: Call):
        host = call.host
        self.call = call
        self.max_bytes: int = min(request.max_bytes, MOST_BYTES)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.deadline = host.now() + max(request.max_wait, 0)
        self.proof_deadline = leadership_deadline(host)
        self.parts: list[Part] = []
        self.absent: list[Part] = []
        """Those that do not exist."""
        self.readable: list[tuple[Part, LogIndex, LogIndex]] = []
        """What this round may read: of a partition, first and last entry."""
        self.bytes = self.batches = 0
        self.crowded = False
        """A batch found no room in `max_bytes`: more than that could have been given."""
        self.interrupted = False
        """A partition has nothing more to give here: do not wait for it."""
        self.undecided = 0
        self.watches: list[WatchTicket] = []
        self.cancel_timer: Callable[[], None] | None = None
        call.on_cancel(self.stop_waiting)

    def locate(self, request: FetchRequest) -> Steps:
        """Find the replicas of all partitions; of one named twice, the last entry counts."""
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
        """Ask every partition that can still give something."""
        host = self.call.host
        asked = [part for part in self.parts if part.replica and not part.error and not part.full]
        self.undecided = len(asked) + 1  # and the asking itself
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
        """One partition has said what may be seen."""
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
        """One partition has decided, or all have been asked."""
        self.undecided -= 1
        if self.undecided == 0 and not self.call.finished:
            self.call.run(self.end_of_round())

    def fail(self, part: Part, error: ErrorCode) -> None:
        """This partition's error ends the request; what was read of it before is still given.

        To wait on would be in vain, and a circle: who leads no longer answers a watch at once.
        """
        host = self.call.host
        if part.batches:
            self.interrupted = True
        elif error is ErrorCode.NOT_LEADER_OR_FOLLOWER and not _exists(part, host):
            part.fail(absent_partition(host))  # deleted meanwhile
        else:
            part.fail(error)

    def diverge(self, part: Part, end: EpochStart) -> None:
        """Nothing of this log is for this reader: that is an answer, and ends the request."""
        part.diverging = end
        part.aborted_is_null = True
        self.interrupted = True

    def read(self, part: Part, index: LogIndex, last: LogIndex) -> Steps:
        """Take what the limits allow of these entries."""
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
        """Bytes that may still be given."""
        return min(part.limit - part.bytes, self.max_bytes - self.bytes)

    def take(self, part: Part, batch: RecordBatch) -> None:
        """Give this batch, or as much of it as there is room for."""
        size, room = len(batch), self.room(part)
        if self.batches == MOST_BATCHES:
            part.full = self.crowded = True
            return
        if size > room and self.bytes:
            part.full = True
            self.crowded = self.crowded or size > self.max_bytes - self.bytes
            # Kafka replaces what is no whole batch, and loses the list on the way.
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
        """Read; answer, or wait for more, unless the client is gone."""
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
        """Watch the high watermarks until one moves, or time is up.

        It is the timer that ends the wait; a watch ends by itself so that none is kept for good.
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
                return  # One was answered at once: the next round has begun.
            yield TICKET_UNITS
            if self.watches is not watches:
                return

    def moved(self, watch: WatchTicket) -> None:
        """A high watermark passed what was seen, or leadership is lost, or time is up."""
        if not watch.cancelled:
            self.stop_waiting()
            self.call.run(self.round())

    def stop_waiting(self) -> None:
        """Forget the watches and the timer."""
        for watch in self.watches:
            watch.cancelled = True
        self.watches = []
        if self.cancel_timer is not None:
            self.cancel_timer()
            self.cancel_timer = None

    def finish(self) -> None:
        """Answer with what there is."""
        self.stop_waiting()
        found = groupby([*self.parts, *self.absent], key=attrgetter("topic"))
        topics = [TopicFetched(topic, Lazily(list(each), Part.answer)) for topic, each in found]
        self.call.answer(FetchAnswer(topics))


def _exists(part: Part, host: Host) -> bool:
    topic = host.topics().get(part.topic)
    return topic is not None and 0 <= part.partition < len(topic.partitions)


def _locate(part: Part, host: Host, request: FetchRequest) -> bool:
    """Find the partition's replica, or say why there is none; False: it does not exist."""
    part.aborted_is_null = request.isolation_level == READ_UNCOMMITTED
    if not _exists(part, host):
        part.fail(absent_partition(host))
        part.aborted_is_null = part.error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return part.aborted_is_null
    part.replica = host.replica(part.topic, part.partition)
    if part.replica is None or request.replica_id >= 0:
        part.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return True
