"""DeleteRecords (key 21), versions 0 to 2: move the log start of partitions.

The new log start is decided in the partition's log, so all replicas move; the answer comes when
that entry is committed and names the log start that resulted. Offset -1 means the high watermark;
an offset above it or below -1 is 1, one below the log start changes nothing and succeeds. Unknown
partition 3, not led here 6, not decided in time 7 (it may still be). With an error the low
watermark is -1. Of a partition that is named twice the last entry counts, and one is answered.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import DeleteRecordsTicket
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.api.encoding import Steps
from ottla.broker.wire.api.rounds import Fields, Round, by_topic, deadline_after, hosted

TICKET_UNITS = 10
"""What it costs to ask one partition, and all its replicas to agree
(`ottla.broker.event_loop.slices`)."""


def handle(request: Any, call: Call) -> None:
    """Ask every partition's leader, answer once."""
    call.run(_ask(request, call))


def _ask(request: Any, call: Call) -> Steps:
    host = call.host
    deadline = deadline_after(host, request.timeout)
    topics: dict[str, list[Fields]] = {}
    asked = Round(lambda: call.reply(throttle_time=0, topics=by_topic(topics)))

    def done(ticket: DeleteRecordsTicket) -> None:
        fields: Any = ticket.owner
        fields["error_code"] = ticket.error
        if ticket.error is ErrorCode.NONE:
            fields["low_watermark"] = ticket.log_start_offset
        asked.end()

    answered = call.guarded(done)
    offsets = {
        (topic.name, part.partition_index): part.offset
        for topic in request.topics
        for part in topic.partitions
    }
    for (topic, partition), offset in offsets.items():
        fields: Fields = {"partition_index": partition, "low_watermark": -1}
        topics.setdefault(topic, []).append(fields)
        replica = hosted(host, topic, partition)
        if isinstance(replica, ErrorCode):
            fields["error_code"] = replica
            yield 1
            continue
        asked.begin()
        host.submit(replica, DeleteRecordsTicket(offset, answered, deadline, fields))
        yield TICKET_UNITS
    asked.end()
