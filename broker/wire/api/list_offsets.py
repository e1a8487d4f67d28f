"""ListOffsets (key 2), versions 1 to 8: offsets by time, from a partition's leader.

    timestamp       from version   answer (K-LIST-OFFSETS)
    -1 latest       1              high watermark, timestamp -1 (no transactions: also the last
                                   stable offset); the log end for a replica id other than -1
    -2 earliest     1              log start offset, timestamp -1
    -3 largest      7              the first record with the largest time, and that time
    -4 local start  8              log start offset, timestamp -1: the log is all local
    a time          1              the first record that is not older: its time and offset
    anything else                  UNSUPPORTED_VERSION for that partition (-5 and -6 begin with
                                   versions 9 and 11)

If the log is empty, or the time is later than all records, the answer is error 0 with offset and
timestamp -1. Records below the log start offset do not count. Only for -3 all records of the first
batch count, also those below the log start offset: Kafka reads whole batches for it (measured), and
the answer may be below the log start offset.

The epoch checks are errors 74 and 75, an unknown partition is 3, one that is not led here 6. These
are checked first: the same partition twice in a request is 42, answered once; a timestamp that is
not served is 35. Times are those of records: a batch whose header promises a time that none of its
records has is skipped. A batch that cannot be read is INVALID_RECORD, a failing store
KAFKA_STORAGE_ERROR.

In a profile that searches negative times (`Profile.negative_times_searched`), as Kafka did before
3.0, only -1 and -2 are special, in every version. Records without a time, whose time is -1, are
behind all others.

The request waits for a leader that does not know its high watermark yet. With replica id -2 every
replica answers at once from its own log. An isolation level other than 0 and 1 is
UNKNOWN_SERVER_ERROR for each entry; between 0 and 1 there is no difference.
"""

from __future__ import annotations

from typing import cast

from ottla.broker.errors import ErrorCode
from ottla.broker.profiles.named import profile_named
from ottla.broker.turn.tickets import CONSUMER, ListOffsetsTicket
from ottla.broker.wire.answers import Lazily, ListOffsetsAnswer, PartitionListed, TopicListed
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.api.rounds import Round, by_partition, hosted, leadership_deadline
from ottla.broker.wire.host import ReplicaInbox
from ottla.broker.wire.requests import ListOffsetsPartition, ListOffsetsRequest
from ottla.log.errors import CompactedError, RecordsError, StoreError
from ottla.log.records import Found, first_record_at_or_after, record_of_max_timestamp
from ottla.log.types import NO_OFFSET, NO_TIMESTAMP, Millis, Offset, RecordBatch, Term
from ottla.raft.types import EntryKind, Micros

LATEST, EARLIEST, LARGEST, LOCAL_START = -1, -2, -3, -4
_BELOW_LARGEST = LARGEST - 1
"""Where negative times are searched: what stands for the time -3 itself."""
FIRST_VERSION = {LATEST: 1, EARLIEST: 1, LARGEST: 7, LOCAL_START: 8}
"""Special timestamps that are served, and the first version that has each."""
ISOLATION_LEVELS = (0, 1)
"""read_uncommitted, read_committed."""
ONE_BATCH = 1
"""Bytes to read: the store gives at least one entry."""


TICKET_UNITS = 10
"""The cost of asking one partition, including the turn of its replica
(`ottla.broker.event_loop.slices`).
"""
LOOK_UNITS = 30
"""The cost if a batch must be searched, too."""


def handle(request: ListOffsetsRequest, call: Call) -> None:
    """Ask every partition, and answer once."""
    if request.isolation_level not in ISOLATION_LEVELS:
        _refuse(request, call)
    else:
        call.run(_ask(request, call))


def _ask(request: ListOffsetsRequest, call: Call) -> Steps:
    host = call.host
    named, twice = yield from by_partition(request.topics)
    searched = profile_named(host.config.profile).negative_times_searched
    topics: dict[str, dict[int, PartitionListed]] = {}
    asked = Round(lambda: call.answer(_answer(topics)))
    for where, part in named.items():
        found = topics.setdefault(where[0], {})
        found[part.partition_index] = PartitionListed(part.partition_index)
        replica = hosted(host, *where)
        if where in twice:
            _fail(found, part, ErrorCode.INVALID_REQUEST)
        elif not (searched or _served(part.timestamp, call.version)):
            _fail(found, part, ErrorCode.UNSUPPORTED_VERSION)
        elif isinstance(replica, ErrorCode):
            _fail(found, part, replica)
        else:
            asked.begin()
            question = _Question(call, replica, part, asked=asked, found=found)
            question.asker = request.replica_id
            if searched and part.timestamp not in {LATEST, EARLIEST}:
                question.timestamp = _BELOW_LARGEST if part.timestamp == LARGEST else part.timestamp
            question.ask(leadership_deadline(host))
            yield TICKET_UNITS if part.timestamp in {LATEST, EARLIEST, LOCAL_START} else LOOK_UNITS
            continue
        yield 1
    asked.end()


def _refuse(request: ListOffsetsRequest, call: Call) -> None:
    error = ErrorCode.UNKNOWN_SERVER_ERROR

    def refused(part: ListOffsetsPartition) -> PartitionListed:
        return PartitionListed(part.partition_index, error)

    topics = [TopicListed(each.name, Lazily(each.partitions, refused)) for each in request.topics]
    call.answer(ListOffsetsAnswer(topics))


def _fail(found: dict[int, PartitionListed], part: ListOffsetsPartition, error: ErrorCode) -> None:
    found[part.partition_index] = PartitionListed(part.partition_index, error)


def _answer(topics: dict[str, dict[int, PartitionListed]]) -> ListOffsetsAnswer:
    return ListOffsetsAnswer(
        [TopicListed(name, list(found.values())) for name, found in topics.items()]
    )


def _served(timestamp: Millis, version: int) -> bool:
    return timestamp >= 0 or version >= FIRST_VERSION.get(timestamp, version + 1)


class _Question:
    """One partition of a request, until it is answered."""

    __slots__ = (
        "_asked",
        "_call",
        "_deadline",
        "_epoch",
        "_found",
        "_host",
        "_number",
        "_replica",
        "asker",
        "timestamp",
    )

    def __init__(
        self,
        call: Call,
        replica: ReplicaInbox,
        part: ListOffsetsPartition,
        *,
        asked: Round,
        found: dict[int, PartitionListed],
    ):
        self._host = call.host
        self._call = call
        self._replica = replica
        self.timestamp: Millis = EARLIEST if part.timestamp == LOCAL_START else part.timestamp
        self._epoch = part.current_leader_epoch
        self._asked = asked
        self._found = found
        self._number = part.partition_index
        self._deadline: Micros = 0
        self.asker = CONSUMER
        """The replica id of the client."""

    def ask(self, deadline: Micros, behind: int = 0) -> None:
        """Ask the partition. `behind`: the index of a batch that was searched without success."""
        self._deadline = deadline
        done = self._call.guarded(self._answered)
        ticket = ListOffsetsTicket(self.timestamp, self._epoch, done, deadline)
        ticket.behind = behind
        ticket.asker = self.asker
        self._host.submit(self._replica, ticket)

    def _answered(self, ticket: ListOffsetsTicket) -> None:
        if ticket.error is not ErrorCode.NONE:
            self._end(ticket.error)
        elif ticket.timestamp in {LATEST, EARLIEST}:
            self._end(offset=ticket.offset, leader_epoch=ticket.leader_epoch)
        elif not ticket.index:
            self._end()
        else:
            self._look(ticket)

    def _look(self, ticket: ListOffsetsTicket) -> None:
        """Search the batch that the partition named."""
        try:
            entry = self._host.read(self._replica.group, ticket.index, ticket.index, ONE_BATCH)[0]
        except CompactedError:
            # The log start offset has moved past the batch, so ask again.
            self.ask(self._deadline)
            return
        except StoreError:
            self._end(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        assert entry.kind is EntryKind.BATCH, f"entry {entry.index} is {entry.kind!r}, no batch"
        batch, searches = cast(RecordBatch, entry.payload), self._host.searches
        if ticket.timestamp == LARGEST:
            search = record_of_max_timestamp(batch, allowance=searches.allowance)
        else:
            start = ticket.log_start_offset
            search = first_record_at_or_after(
                batch, ticket.timestamp, start=start, allowance=searches.allowance
            )
        searches.begin(search, lambda found: self._looked(ticket, batch, found))

    def _looked(
        self, ticket: ListOffsetsTicket, batch: RecordBatch, found: Found | RecordsError
    ) -> None:
        if isinstance(found, RecordsError):
            self._end(ErrorCode.INVALID_RECORD)
        elif found is not None:
            self._end(offset=found[0], timestamp=found[1], leader_epoch=batch.leader_epoch)
        elif ticket.timestamp == LARGEST:
            self._end()  # all times in this batch, and so in all batches, are below -1 (measured)
        else:
            self.ask(self._deadline, ticket.index)

    def _end(
        self,
        error: ErrorCode = ErrorCode.NONE,
        *,
        timestamp: Millis = NO_TIMESTAMP,
        offset: Offset = NO_OFFSET,
        leader_epoch: Term = -1,
    ) -> None:
        number = self._number
        self._found[number] = PartitionListed(number, error, timestamp, offset, leader_epoch)
        self._asked.end()
