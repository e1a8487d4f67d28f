"""InitProducerId (key 22), versions 0 to 5: an id that nobody has, for an idempotent producer.

Without a transactional id the answer is always a new id with epoch 0, whatever id and epoch the
request carries (K-PRODUCER-ID): such a producer bumps its epoch by itself. Naming only one of
id and epoch is INVALID_REQUEST, so is an empty transactional id. While this node has no
block of ids yet: COORDINATOR_LOAD_IN_PROGRESS, which clients retry.

Transactions are not served (docs/not-implemented.md). Another transactional id is refused with
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the code that every client takes as final here: Java and
librdkafka make the producer unusable (K-CLIENTS), where a retriable code would have it wait
for ever. The response has no field for a text.
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
