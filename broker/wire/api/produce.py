"""Produce (key 0), versions 3 to 12; 0 to 2 are advertised and close the connection, as in Kafka.

Hops 2 and 7 of a produce request (docs/explanation/architecture.md). `handle` does the checks that
come before the partition's own, in Kafka's order (K-CHECKS):

    1    the first batch header of each partition is sound    else CORRUPT_MESSAGE for all
    2    no transactional batch: transactions are not served  else TRANSACTIONAL_ID_AUTHORIZATION_
                                                              FAILED for all (fatal for clients)
    4    topic and partition exist                            else `host.absent_partition`
    5    a version 2 batch                                     else INVALID_RECORD
         v<7: of a codec that exists, and not zstd            else UNKNOWN_SERVER_ERROR for all,
                                                              UNSUPPORTED_COMPRESSION_TYPE
         and only one                                         else INVALID_RECORD, CORRUPT_MESSAGE
    6    whose header goes as far as the producer id          else UNKNOWN_SERVER_ERROR for all
    8    acks is -1, 0 or 1                                   else INVALID_REQUIRED_ACKS
    10   the partition is hosted here                         else NOT_LEADER_OR_FOLLOWER

Then each batch goes to its partition as a `ProduceTicket`, and the partition does the other checks
(`ottla.broker.partition.admission`). It also refuses a batch that ends inside its header after the
producer id. From version 8 on the answer names the faulty records. If records are null, Kafka
answers nothing; here the answer is INVALID_RECORD. If a request has an existing partition twice,
Kafka silently drops the earlier batch; here the answer is INVALID_REQUEST, and nothing is stored,
unless the profile does as Kafka does (`Profile.last_twin_counts`), or stores both as Redpanda does
(`Profile.both_twins_count`). In Kafka 2.4 records that begin with no batch close the connection,
before all other checks (`Profile.no_batch_closes`).

The answer comes when every partition of the request has its outcome. With acks=0 there is no
answer, and an error closes the connection (promise-P2). The usual request of a producer takes a
short cut (`ottla.broker.wire.translation.produce_shortcut`) with the same results.
"""

from __future__ import annotations

from collections.abc import Generator
from struct import Struct
from typing import NamedTuple, TypeAlias, cast

from ottla.broker.errors import DEFECT_CODES, REQUEST_WIDE_DEFECTS, ErrorCode
from ottla.broker.profiles.named import profile_named
from ottla.broker.topics.configs import integer
from ottla.broker.turn.tickets import LEAST_PATIENCE, ProduceTicket
from ottla.broker.wire.answers import PartitionProduced, TopicProduced
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.api.produce_answers import answer_of, bare, end_unanswered, outcome_of
from ottla.broker.wire.copying import copied
from ottla.broker.wire.host import Host, absent_partition
from ottla.broker.wire.requests import ProduceRequest
from ottla.log.record_batch import (
    MAX_CODEC,
    BatchDefect,
    begins_with_batch,
    first_codec,
    names_producer,
    read_batch,
    read_beginning,
)
from ottla.log.types import BATCH_HEADER_BYTES, CODEC_MASK, TRANSACTIONAL_BIT, RecordBatch
from ottla.raft.types import Micros

ACKS = (-1, 0, 1)
ZSTD = 4
NO_TRANSACTIONS = "Transactions are not served by this broker"

BYTES_CHECKED_A_UNIT = 1 << 15
"""The checksum of this many bytes costs one unit (`ottla.broker.event_loop.slices`)."""
MANY_RECORDS = 1000
"""A compressed batch with more records takes 4 ms to seconds to check, and its partition accepts
nothing else meanwhile. The connection begins no request behind such a batch, so that each
connection has at most one of them in progress."""
TICKET_UNITS = 6
"""The cost of one batch, including the work of its partition and of all replicas."""

_LENGTH_AND_MAGIC = Struct(">iib")


class Refusal(NamedTuple):
    """Why a whole request is refused before any partition is asked."""

    error: ErrorCode
    message: str | None = None


Judging: TypeAlias = Generator[int, None, Refusal | None]
"""Steps whose result says whether the whole request is refused."""


def handle(request: ProduceRequest, call: Call) -> None:
    """Hop 2: check the request, and submit its batches to their partitions."""
    begin(request, call, Several)


def begin(request: ProduceRequest, call: Call, several: type[Several]) -> None:
    """As `handle`; `several` has the checks of the partitions."""
    call.run(_begin(request, call, several))


def patience(timeout: Micros) -> Micros:
    """How long a request with this timeout waits for its acknowledgement."""
    return max(timeout, LEAST_PATIENCE)


def _begin(request: ProduceRequest, call: Call, several: type[Several]) -> Steps:
    items = yield from _items(request, call.host)
    acks, timeout = request.acks, patience(request.timeout)
    del request  # a large request keeps its frame in memory
    yield from several(items, acks, call).begin(timeout)


def _items(request: ProduceRequest, host: Host) -> Generator[int, None, list[Item]]:
    items: list[Item] = []
    for topic in request.topic_data:
        if not topic.partition_data:
            yield 1
        for partition in topic.partition_data:
            item = Item(topic.name, partition.partition, partition.records)
            items.append(item)
            yield 1
            if isinstance(partition.records, memoryview):
                yield from _own(item, host)
    return items


def _own(item: Item, host: Host) -> Steps:
    """Copy a batch out of its frame. A batch that is larger than its topic allows is not copied,
    because it is refused before its records are read."""
    batch, topic = item.batch, host.topics().get(item.topic)
    if isinstance(batch, BatchDefect) or topic is None:
        return
    if len(batch.data) <= integer("max.message.bytes", topic.configs, host.config):
        batch.data = item.records = yield from copied(batch.data)


def takes_long(batch: RecordBatch) -> bool:
    """Whether the check of this batch may take so long that its connection must wait."""
    return batch.record_count > MANY_RECORDS and bool(batch.attributes & CODEC_MASK)


class Item:
    """One partition of a request."""

    __slots__ = ("answer", "batch", "index", "records", "topic")

    def __init__(self, topic: str, index: int, records: bytes | memoryview | None):
        self.topic = topic
        self.index = index
        self.records = cast("bytes | None", records)  # a view has all operations used here
        self.batch: RecordBatch | BatchDefect = (
            BatchDefect.NO_BATCH if self.records is None else read_batch(self.records)
        )
        if self.records is not None and self.batch is BatchDefect.TOO_SHORT:
            self.batch = read_beginning(bytes(self.records[:BATCH_HEADER_BYTES]))
        self.answer: PartitionProduced | None = None


class Several:
    """A request that did not take the short cut: any number of partitions, faulty or not."""

    def __init__(self, items: list[Item], acks: int, call: Call):
        self.items = items
        self.acks = acks
        self.call = call
        self.profile = profile_named(call.host.config.profile)
        self.waiting = 0
        self.holds = False
        """A batch takes long to check, and the connection begins no request meanwhile."""

    def begin(self, timeout: Micros) -> Steps:
        """Refuse the whole request, or refuse some batches and submit the others."""
        if self.profile.no_batch_closes and not (yield from self._parses()):
            self.call.close("produce with records that are no batch")
            return
        host = self.call.host
        deadline, wall_ms = host.now() + timeout, host.wall_ms()
        refusal = yield from _request_refusal(self.items, self.call)
        if refusal is None and self.profile.acks_checked_first and self.acks not in ACKS:
            if any(_is_of_producer(item) for item in self.items):
                self.call.close(f"produce of a producer with acks={self.acks}")
                return
            refusal = Refusal(ErrorCode.INVALID_REQUIRED_ACKS)
        if self.profile.last_twin_counts:
            self.items = yield from self._last_twins()
        refusal = refusal or (yield from self._judge())
        if refusal is not None:
            for item in self.items:
                item.answer = PartitionProduced(item.index, refusal.error, message=refusal.message)
            self.finish()
            return
        done = self.call.guarded(self.done)
        self.waiting = 1
        for item in self.items:
            item.answer = item.answer or self.refuse_acks(item) or _misplaced(item, host)
            if item.answer is None:
                self._submit(
                    item,
                    ProduceTicket(
                        cast(RecordBatch, item.batch),
                        self.acks,
                        done,
                        deadline,
                        item,
                        wall_ms=wall_ms,
                    ),
                )
                yield TICKET_UNITS + len(item.records or b"") // BYTES_CHECKED_A_UNIT
            yield 1
        self._end()

    def _parses(self) -> Generator[int, None, bool]:
        """Whether Kafka 2.4 finds a batch at the beginning of all records when it parses the
        request, and in it whether there is a producer, until it has found one."""
        sought = True
        for item in self.items:
            if not begins_with_batch(item.records or b"", as_far_as_producer=sought):
                return False
            sought = sought and not _is_of_producer(item)
            yield 1
        return True

    def _last_twins(self) -> Generator[int, None, list[Item]]:
        """Of the batches for one partition the last readable one, and the answer to the last one
        that is not: Kafka collects the two apart, so it stores the former and answers the latter
        (measured on 4.3.1; found by `ottla compare --fuzz`). Most requests have no twins."""
        named = set[tuple[str, int]]()
        for item in self.items:
            named.add((item.topic, item.index))
            yield 1
        if len(named) == len(self.items):
            return self.items
        if self.profile.earlier_twins_unread:
            return list({(item.topic, item.index): item for item in self.items}.values())
        readable: dict[tuple[str, int], Item] = {}
        refused: dict[tuple[str, int], Item] = {}
        for item in self.items:
            item.answer = self.unreadable(item)
            kept = readable if item.answer is None else refused
            kept[item.topic, item.index] = item
            yield 1
        return [*readable.values(), *refused.values()]

    def _judge(self) -> Judging:
        """Steps 4 to 6 for each partition that is not refused yet. The result is the refusal of the
        whole request, if any."""
        left = [item for item in self.items if item.answer is None]
        times: dict[tuple[str, int], int] = {}
        for item in () if self.profile.both_twins_count else left:
            times[item.topic, item.index] = times.get((item.topic, item.index), 0) + 1
        for item in left:
            if times.get((item.topic, item.index), 1) > 1 and _exists(item, self.call.host):
                item.answer = PartitionProduced(item.index, ErrorCode.INVALID_REQUEST)
            else:
                item.answer = self.unreadable(item)
            if item.answer is None and not names_producer(cast(RecordBatch, item.batch)):
                return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            yield 1
        return None

    def unreadable(self, item: Item) -> PartitionProduced | None:
        """Steps 4 and 5 for one partition; None if it has a readable batch."""
        index, batch = item.index, item.batch
        if not _exists(item, self.call.host):
            return PartitionProduced(index, absent_partition(self.call.host))
        if self.call.version < 7 and _first_codec(item) == ZSTD:
            return PartitionProduced(index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if isinstance(batch, BatchDefect):
            return PartitionProduced(index, DEFECT_CODES[batch])
        return None

    def refuse_acks(self, item: Item) -> PartitionProduced | None:
        """Step 8 for one partition; None if the request's acks are valid."""
        if self.acks in ACKS:
            return None
        return PartitionProduced(item.index, ErrorCode.INVALID_REQUIRED_ACKS)

    def _submit(self, item: Item, ticket: ProduceTicket) -> None:
        replica = self.call.host.replica(item.topic, item.index)
        assert replica is not None, "_misplaced found it"
        self.waiting += 1
        if takes_long(ticket.batch) and not self.holds:
            self.holds = True
            self.call.hold()
        if self.profile.first_stage_holds:
            ticket.on_enqueued = self.call.guarded(self._dispatched)
            self.call.hold()
        self.call.host.submit(replica, ticket)

    def _dispatched(self, ticket: ProduceTicket) -> None:
        """One batch has its place in the log, or its outcome."""
        if ticket.on_enqueued is not None:
            ticket.on_enqueued = None
            self.call.release()

    def done(self, ticket: ProduceTicket) -> None:
        """One partition has its outcome."""
        item = ticket.owner
        assert isinstance(item, Item)
        item.answer = outcome_of(item.index, ticket)
        self._dispatched(ticket)
        self._end()

    def _end(self) -> None:
        """One partition has its outcome, or all batches are submitted."""
        self.waiting -= 1
        if self.waiting == 0:
            self.finish()

    def finish(self) -> None:
        """Hop 7: all partitions have their outcome."""
        if self.holds:
            self.call.release()
        self.call.run(self._answers())

    def _answers(self) -> Steps:
        found: dict[str, dict[int, PartitionProduced]] = {}
        apart = self.profile.both_twins_count
        failed = ErrorCode.NONE
        for item in self.items:
            answer = item.answer
            assert answer is not None
            if self.profile.bare_produce_answers:
                answer = bare(answer)
            answers = found.setdefault(item.topic, {})
            answers[len(answers) if apart else item.index] = answer
            failed = failed or answer.error
            yield 1
        if self.acks == 0:
            end_unanswered(self.call, failed)
            return
        topics = [TopicProduced(topic, list(each.values())) for topic, each in found.items()]
        self.call.answer(answer_of(self.call.host, topics))


def _is_of_producer(item: Item) -> bool:
    return isinstance(item.batch, RecordBatch) and item.batch.producer_id >= 0


def _request_refusal(items: list[Item], call: Call) -> Judging:
    """Steps 1 and 2. Before version 7 also an unknown codec in an existing partition: Kafka refuses
    the whole request for it."""
    for item in items:
        if isinstance(item.batch, BatchDefect) and item.batch in REQUEST_WIDE_DEFECTS:
            return Refusal(DEFECT_CODES[item.batch], _corruption(item))
        if _is_transactional(item):
            return Refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONS)
        yield 1
    if call.version < 7:
        for item in items:
            if (_first_codec(item) or 0) > MAX_CODEC and _exists(item, call.host):
                return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
            yield 1
    return None


def _first_codec(item: Item) -> int | None:
    return None if item.records is None else first_codec(item.records)


def _exists(item: Item, host: Host) -> bool:
    topic = host.topics().get(item.topic)
    return topic is not None and 0 <= item.index < len(topic.partitions)


def _corruption(item: Item) -> str:
    """Kafka's message for a malformed header of the first batch (K-BATCHES)."""
    length, _, magic = _LENGTH_AND_MAGIC.unpack_from(bytes((item.records or b"")[:17]).ljust(17), 8)
    if item.batch is BatchDefect.UNKNOWN_MAGIC:
        return f"Invalid magic found in record: {magic}"
    return f"Record size {length} is less than the minimum record overhead (14)"


def _is_transactional(item: Item) -> bool:
    """Whether the header of the first batch has the transactional bit. A batch that is cut off does
    not count."""
    records = item.records
    if records is None or item.batch is BatchDefect.NO_BATCH:
        return False
    return len(records) > 22 and records[16] == 2 and bool(records[22] & TRANSACTIONAL_BIT)


def _misplaced(item: Item, host: Host) -> PartitionProduced | None:
    """Step 10 for one partition; None if the batch may be submitted."""
    index = item.index
    if host.replica(item.topic, index) is None:
        if not _exists(item, host):
            return PartitionProduced(index, absent_partition(host))  # deleted meanwhile
        image = host.leader(host.topics()[item.topic].partitions[index].group)
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return PartitionProduced(index, error, leader=image.leader or -1, leader_epoch=image.epoch)
    return None
