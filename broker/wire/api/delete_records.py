"""DeleteRecords (key 21), versions 0 to 2: move the log start offset of partitions.

The new log start offset is a command in the partition's log, so that all replicas apply it. The
answer comes when that entry is committed, with the resulting log start offset. Offset -1 means the
high watermark. An offset above it or below -1 is error 1; an offset below the log start offset
changes nothing and succeeds. An unknown partition is error 3, one that is not led here 6, one not
decided in time 7 (it may be decided later). With an error the low watermark is -1. If a partition
is named twice, the last entry counts, and it is answered once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import DeleteRecordsTicket
from ottla.broker.wire.answers import DeleteRecordsAnswer, RecordsDeleted, TopicRecordsDeleted
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.api.rounds import Round, by_partition, deadline_after, hosted
from ottla.broker.wire.requests import DeleteRecordsRequest
from ottla.log.types import NO_OFFSET

TICKET_UNITS = 10
"""The cost of one partition, including the work of all its replicas
(`ottla.broker.event_loop.slices`)."""


def handle(request: DeleteRecordsRequest, call: Call) -> None:
    """Send a ticket to every partition, and answer once."""
    call.run(_ask(request, call))


def _ask(request: DeleteRecordsRequest, call: Call) -> Steps:
    host = call.host
    deadline = deadline_after(host, request.timeout)
    topics: dict[str, dict[int, RecordsDeleted]] = {}
    asked = Round(lambda: call.answer(_answer(topics)))

    def done(topic: str, partition: int, ticket: DeleteRecordsTicket) -> None:
        start = ticket.log_start_offset if ticket.error is ErrorCode.NONE else NO_OFFSET
        topics[topic][partition] = RecordsDeleted(partition, start, ticket.error)
        asked.end()

    named, _ = yield from by_partition(request.topics)
    for (topic, partition), part in named.items():
        replica = hosted(host, topic, partition)
        refused = replica if isinstance(replica, ErrorCode) else ErrorCode.NONE
        found = topics.setdefault(topic, {})
        found[partition] = RecordsDeleted(partition, error_code=refused)
        if isinstance(replica, ErrorCode):
            yield 1
            continue
        asked.begin()
        answered = call.guarded(partial(done, topic, partition))
        host.submit(replica, DeleteRecordsTicket(part.offset, answered, deadline))
        yield TICKET_UNITS
    asked.end()


def _answer(topics: Mapping[str, Mapping[int, RecordsDeleted]]) -> DeleteRecordsAnswer:
    return DeleteRecordsAnswer(
        [TopicRecordsDeleted(name, list(found.values())) for name, found in topics.items()]
    )
