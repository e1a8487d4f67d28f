"""DeleteRecords (key 21), versions 0 to 2: move the log start of partitions.

The new log start is decided in the partition's log, so all replicas move; the answer comes when
that entry is committed and names the log start that resulted. Offset -1 means the high watermark;
an offset above it or below -1 is 1, one below the log start changes nothing and succeeds. Unknown
partition 3, not led here 6, not decided in time 7 (it may still be). With an error the low
watermark is -1. Of a partition that is named twice the last entry counts, and one is answered.
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
"""What it costs to ask one partition, and all its replicas to agree
(`ottla.broker.event_loop.slices`)."""


def handle(request: DeleteRecordsRequest, call: Call) -> None:
    """Ask every partition's leader, answer once."""
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
