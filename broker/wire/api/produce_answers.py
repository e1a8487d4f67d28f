"""Answers to Produce: what of a ticket, or of no ticket, a client is told (hop 7)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.errors import FAULTY_RECORDS, ErrorCode
from ottla.broker.images import BrokerImage
from ottla.broker.turn.tickets import ProduceTicket
from ottla.broker.wire.answers import PartitionProduced, ProduceAnswer, TopicProduced
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.host import Host

LEAST_OFFSET = -(2**63)
"""What stands in an answer for an offset that nobody has set (redpanda #6685)."""


def answer_of(host: Host, topics: Sequence[TopicProduced]) -> ProduceAnswer:
    """The answer for these topics, with the addresses of brokers that may lead their partitions."""
    return ProduceAnswer(topics, _named(host, topics))


def _named(host: Host, answers: Sequence[TopicProduced]) -> Sequence[BrokerImage]:
    topics = host.topics()
    return host.brokers(
        topics[name].partitions[part.partition].group
        for name, parts in answers
        if name in topics
        for part in parts
        if 0 <= part.partition < len(topics[name].partitions)
    )


def end_unanswered(call: Call, error: ErrorCode) -> None:
    """End a request with acks=0: no answer; an error closes the connection."""
    if error is ErrorCode.NONE:
        call.no_answer()
    else:
        call.close(f"produce with acks=0 failed: {error.name}")


def outcome_of(index: int, ticket: ProduceTicket) -> PartitionProduced:
    """The answer for a partition, from its finished ticket."""
    return PartitionProduced(
        index,
        ticket.error,
        ticket.base_offset,
        ticket.log_append_time,
        ticket.log_start_offset,
        message=FAULTY_RECORDS.get(ticket.error) if ticket.faults else None,
        leader=ticket.leader or -1,
        leader_epoch=ticket.leader_epoch,
        faults=ticket.faults,
    )


def bare(answer: PartitionProduced) -> PartitionProduced:
    """The answer with partition, error and base offset alone."""
    base_offset = LEAST_OFFSET if answer.error else answer.base_offset
    return PartitionProduced(answer.partition, answer.error, base_offset)
