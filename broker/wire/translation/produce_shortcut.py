"""A short cut for Produce: a request with a remembered prefix passes by the codec.

`ottla.broker.wire.translation.produce_prefixes` reads such a request. `begin_produce` and
`finish_produce` are its hops 2 and 7. They do what the handler of Produce
(`ottla.broker.wire.api.produce`) does with one ordinary batch. Every other batch goes to the
handler.
"""

from __future__ import annotations

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import ProduceTicket
from ottla.broker.wire.answers import TopicProduced
from ottla.broker.wire.api.produce import ACKS, MANY_RECORDS, handle
from ottla.broker.wire.api.produce_answers import answer_of, end_unanswered, outcome_of
from ottla.broker.wire.byte_call import ByteCall
from ottla.broker.wire.requests import ProducePartition, ProduceRequest, ProduceTopic
from ottla.broker.wire.translation.produce_answer import FLEXIBLE_FROM, PACK_ONE_V9, pack_one
from ottla.broker.wire.translation.produce_prefixes import Target
from ottla.log.record_batch import BatchDefect, read_batch


def begin_produce(target: Target, records: bytes, call: ByteCall) -> None:
    """Hop 2 for a request with one batch; if the batch is not ordinary, the handler takes it."""
    batch = read_batch(records)
    host = call.host
    replica = host.replica(target.topic, target.partition)
    if (
        replica is None
        or batch.__class__ is BatchDefect
        or batch.attributes & target.odd_bits  # type: ignore[union-attr]  # no defect
        or batch.record_count > MANY_RECORDS  # type: ignore[union-attr]  # no defect
        or target.acks not in ACKS
    ):
        parts = (ProducePartition(target.partition, records),)
        topics = (ProduceTopic(target.topic, parts),)
        handle(ProduceRequest(target.acks, target.timeout, topics), call)
        return
    call.memo = target
    deadline = host.now() + target.timeout
    host.submit(
        replica,
        ProduceTicket(
            batch,  # type: ignore[arg-type]  # no defect
            target.acks,
            finish_produce,
            deadline,
            call,
            wall_ms=host.wall_ms(),
        ),
    )


def finish_produce(ticket: ProduceTicket) -> None:
    """Hop 7 for a request that took the short cut: answer it."""
    call = ticket.owner
    error = ticket.error
    if ticket.acks == 0:
        end_unanswered(call, error)
        return
    target = call.memo
    if error is not ErrorCode.NONE and (error is ErrorCode.NOT_LEADER_OR_FOLLOWER or ticket.faults):
        topic = TopicProduced(target.topic, [outcome_of(target.partition, ticket)])
        call.answer(answer_of(call.host, [topic]))
        return
    base, time, start = ticket.base_offset, ticket.log_append_time, ticket.log_start_offset
    if call.version >= FLEXIBLE_FROM:
        body = target.head + PACK_ONE_V9(target.partition, error, base, time, start, 1)
    else:
        numbers = (target.partition, error, base, time, start)
        body = pack_one(target.head, call.version, numbers)
    call.answer_bytes(body)
