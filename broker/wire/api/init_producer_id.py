"""InitProducerId (key 22), versions 0 to 5: a new producer id for an idempotent producer.

Without a transactional id the answer is always a new id with epoch 0, also if the request has an id
and an epoch (K-PRODUCER-ID): such a producer raises its epoch by itself. A request with only one of
id and epoch is INVALID_REQUEST, and so is an empty transactional id. While this node has no block
of ids, the answer is COORDINATOR_LOAD_IN_PROGRESS, and clients retry.

Transactions are not implemented (docs/not-implemented.md). A transactional id is refused with
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which every client takes as final: Java and librdkafka make
the producer unusable (K-CLIENTS). With a retriable code it would wait for ever. The answer has no
field for a text.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import InitProducerIdAnswer
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.requests import NO_EPOCH, InitProducerIdRequest
from ottla.log.types import NO_PRODUCER_ID, ProducerEpoch, ProducerId


def handle(request: InitProducerIdRequest, call: Call) -> None:
    """Refuse, or answer with the next id of this node's block."""
    error = _refusal(request)
    if error is ErrorCode.NONE:
        call.host.new_producer_id(call.guarded(partial(_answer, call)))
    else:
        _answer(call, error, NO_PRODUCER_ID, NO_EPOCH)


def _refusal(request: InitProducerIdRequest) -> ErrorCode:
    if request.transactional_id:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    has_id = request.producer_id != NO_PRODUCER_ID
    has_epoch = request.producer_epoch != NO_EPOCH
    if request.transactional_id is not None or has_id != has_epoch:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _answer(call: Call, error: ErrorCode, producer_id: ProducerId, epoch: ProducerEpoch) -> None:
    if error is not ErrorCode.NONE:
        producer_id, epoch = NO_PRODUCER_ID, NO_EPOCH
    call.answer(InitProducerIdAnswer(error, producer_id, epoch))
