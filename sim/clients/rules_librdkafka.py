"""librdkafka's rules: what it does for each outcome (K-CLIENTS).

`refresh` puts the metadata in doubt and implies a retry. `counts` says whether the retry counts;
only its backoff depends on that. Outcomes that are not in the table fail the batch; with
idempotence everything is then drained and the epoch bumped. With idempotence
OUT_OF_ORDER_SEQUENCE_NUMBER has its own rules (`order_error`), and so has UNKNOWN_PRODUCER_ID,
which Kafka answered before KIP-360 (`LibrdkafkaProducer`).

Source: rd_kafka_err_action and rd_kafka_handle_Produce_error in src/rdkafka_request.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.types import Sequence
from ottla.sim.world.outcomes import Lost, Outcome

HALF = 1 << 30


class Rule(NamedTuple):
    """What follows from an outcome."""

    retry: bool
    refresh: bool
    counts: bool


RETRY = Rule(retry=True, refresh=False, counts=True)
REFRESH = Rule(retry=True, refresh=True, counts=False)
REFRESH_COUNTED = Rule(retry=True, refresh=True, counts=True)
FAIL = Rule(retry=False, refresh=False, counts=False)

RULES: Mapping[Outcome, Rule] = {
    ErrorCode.CORRUPT_MESSAGE: RETRY,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: REFRESH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: REFRESH,
    ErrorCode.REQUEST_TIMED_OUT: RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS: RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: RETRY,
    ErrorCode.KAFKA_STORAGE_ERROR: REFRESH_COUNTED,
    Lost.DISCONNECTED: REFRESH_COUNTED,
    Lost.TIMED_OUT: RETRY,
}


def rule_for(outcome: Outcome) -> Rule:
    """What librdkafka does, without what idempotence adds."""
    return RULES.get(outcome, FAIL)


@unique
class OrderError(Enum):
    """What OUT_OF_ORDER_SEQUENCE_NUMBER means for a batch, by its place in the sequence."""

    HEAD_OF_LINE = "nothing before it is open: client and broker disagree, fatal"
    BEHIND = "one before it failed: bump and retry"
    REWOUND = "it was acknowledged before: fatal"


def order_error(seq: Sequence, next_ack: Sequence) -> OrderError:
    """The meaning for a batch that begins at `seq`, if `next_ack` should be acknowledged next
    (rd_kafka_handle_idempotent_Produce_error)."""
    ahead = (seq - next_ack) & MAX_SEQUENCE
    if ahead == 0:
        return OrderError.HEAD_OF_LINE
    return OrderError.BEHIND if ahead < HALF else OrderError.REWOUND
