"""DeleteRecords (key 21), versions 0 to 2: move the log start of partitions.

The new log start is decided in the partition's log, so all replicas move; the answer comes when
that entry is committed and names the log start that resulted. Offset -1 means the high watermark;
an offset above it or below -1 is 1, one below the log start changes nothing and succeeds. Unknown
partition 3, not led here 6, not decided in time 7 (it may still be). With an error the low
watermark is -1.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.api.call import Call
from ottla.broker.api.rounds import Fields, Round, deadline_after, hosted
from ottla.broker.commands import DeleteRecordsTicket
from ottla.broker.errors import ErrorCode


def handle(request: Any, call: Call) -> None:
    """Ask every partition's leader, answer once."""
    host = call.host
    deadline = deadline_after(host, request.timeout)
    topics: list[Fields] = []
    asked = Round(lambda: call.reply(throttle_time=0, topics=topics))

    def done(ticket: DeleteRecordsTicket) -> None:
        fields: Any = ticket.owner
        fields["error_code"] = ticket.error
        if ticket.error is ErrorCode.NONE:
            fields["low_watermark"] = ticket.log_start_offset
        asked.end()

    answered = call.guarded(done)
    for topic in request.topics:
        partitions: list[Fields] = []
        topics.append({"name": topic.name, "partitions": partitions})
        for part in topic.partitions:
            fields: Fields = {"partition_index": part.partition_index, "low_watermark": -1}
            partitions.append(fields)
            replica = hosted(host, topic.name, part.partition_index)
            if isinstance(replica, ErrorCode):
                fields["error_code"] = replica
                continue
            asked.begin()
            host.submit(replica, DeleteRecordsTicket(part.offset, answered, deadline, fields))
    asked.end()
