"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where leader epochs end (KIP-101, KIP-320).

For each partition the answer has the largest epoch that is not above the one asked for, and the
offset after its last record; for the current epoch that is the log end offset. If the log has no
record of the epoch any more (it is older than all, or its records are below the log start offset),
the answer is that epoch and the log start offset. An epoch above the current one, and -1, are
undefined: error 0, epoch -1, offset -1. All this is as in Kafka
(LeaderEpochFileCache.endOffsetFor). A current leader epoch that differs from the leader's is error
74 or 75, an unknown partition 3, one that is not led here 6. The replica id (from version 3 on)
makes no difference (measured on 4.3.1 for -1, -2, -3, 1 and 5).
"""

from __future__ import annotations

from functools import partial

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import EpochEndTicket
from ottla.broker.wire.answers import EpochEnd, OffsetForLeaderEpochAnswer, TopicEpochEnds
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.api.rounds import Round, hosted, leadership_deadline
from ottla.broker.wire.requests import OffsetForLeaderEpochRequest

TICKET_UNITS = 10
"""The cost of asking one partition (`ottla.broker.event_loop.slices`)."""


def handle(request: OffsetForLeaderEpochRequest, call: Call) -> None:
    """Ask every partition, and answer once."""
    call.run(_ask(request, call))


def _ask(request: OffsetForLeaderEpochRequest, call: Call) -> Steps:
    host = call.host
    topics: list[TopicEpochEnds] = []
    asked = Round(lambda: call.answer(OffsetForLeaderEpochAnswer(topics)))

    def done(ends: list[EpochEnd], place: int, ticket: EpochEndTicket) -> None:
        end = EpochEnd(ends[place].partition, ticket.error)
        if ticket.error is ErrorCode.NONE and ticket.end is not None:
            end = end._replace(leader_epoch=ticket.end[0], end_offset=ticket.end[1])
        ends[place] = end
        asked.end()

    for topic in request.topics:
        ends: list[EpochEnd] = []
        topics.append(TopicEpochEnds(topic.topic, ends))
        if not topic.partitions:
            yield 1
        for part in topic.partitions:
            replica = hosted(host, topic.topic, part.partition)
            if isinstance(replica, ErrorCode):
                ends.append(EpochEnd(part.partition, replica))
                yield 1
                continue
            ends.append(EpochEnd(part.partition))
            asked.begin()
            answered = call.guarded(partial(done, ends, len(ends) - 1))
            ticket = EpochEndTicket(
                part.leader_epoch, part.current_leader_epoch, answered, leadership_deadline(host)
            )
            host.submit(replica, ticket)
            yield TICKET_UNITS
    asked.end()
