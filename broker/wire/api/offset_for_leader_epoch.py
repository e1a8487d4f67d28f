"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where did a leader epoch end (KIP-101, KIP-320)?

Answered per partition with the largest epoch not above the one asked for, and the offset behind
its last record; for the current epoch that is the log end. An epoch that has no record in the log
any more, because it is older or because its records lie below the log start, is answered with
itself and the log start. One above the current epoch is undefined, and so is -1: error 0, epoch -1,
offset -1. All as in Kafka (LeaderEpochFileCache.endOffsetFor). A current leader epoch that differs
from the leader's is 74 or 75; unknown partition 3, not led here 6. The replica id (version 3 on)
makes no difference (measured on 4.3.1 for -1, -2, -3, 1 and 5).
"""

from __future__ import annotations

from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import EpochEndTicket
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.api.encoding import Steps
from ottla.broker.wire.api.rounds import Fields, Round, hosted, leadership_deadline

TICKET_UNITS = 10
"""What it costs to ask one partition (`ottla.broker.event_loop.slices`)."""


def handle(request: Any, call: Call) -> None:
    """Ask every partition's leader, answer once."""
    call.run(_ask(request, call))


def _ask(request: Any, call: Call) -> Steps:
    host = call.host
    topics: list[Fields] = []
    asked = Round(lambda: call.reply(throttle_time=0, topics=topics))

    def done(ticket: EpochEndTicket) -> None:
        fields: Any = ticket.owner
        fields["error_code"] = ticket.error
        if ticket.error is ErrorCode.NONE and ticket.end is not None:
            fields["leader_epoch"], fields["end_offset"] = ticket.end
        asked.end()

    answered = call.guarded(done)
    for topic in request.topics:
        partitions: list[Fields] = []
        topics.append({"topic": topic.topic, "partitions": partitions})
        for part in topic.partitions:
            fields: Fields = {"partition": part.partition, "leader_epoch": -1, "end_offset": -1}
            partitions.append(fields)
            replica = hosted(host, topic.topic, part.partition)
            if isinstance(replica, ErrorCode):
                fields["error_code"] = replica
                yield 1
                continue
            asked.begin()
            claimed = part.current_leader_epoch
            deadline = leadership_deadline(host)
            ticket = EpochEndTicket(part.leader_epoch, claimed, answered, deadline, fields)
            host.submit(replica, ticket)
            yield TICKET_UNITS
    asked.end()
