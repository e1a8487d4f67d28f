"""The Java producer's rules: what it does for each outcome (K-CLIENTS).

`retry` stands for exceptions that are retriable, `refresh` for those that put the metadata in
doubt. Outcomes that are not in the table fail the batch; with idempotence the partition then starts
a new epoch. Three codes need more than a row. MESSAGE_TOO_LARGE splits a batch of several records.
OUT_OF_ORDER_SEQUENCE_NUMBER depends on what is known of earlier batches, and UNKNOWN_PRODUCER_ID,
which Kafka answered before KIP-360, on the log start (`JavaLane.may_retry`).

Source: Sender.completeBatch, canRetry; TransactionManager.canRetry; the exceptions' own classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.sim.world.outcomes import Lost, Outcome


class Rule(NamedTuple):
    """What follows from an outcome."""

    retry: bool
    refresh: bool


RETRY = Rule(retry=True, refresh=False)
RETRY_REFRESH = Rule(retry=True, refresh=True)
FAIL = Rule(retry=False, refresh=False)

RULES: Mapping[Outcome, Rule] = {
    ErrorCode.CORRUPT_MESSAGE: RETRY,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: RETRY_REFRESH,
    ErrorCode.LEADER_NOT_AVAILABLE: RETRY_REFRESH,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: RETRY_REFRESH,
    ErrorCode.REQUEST_TIMED_OUT: RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS: RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: RETRY,
    ErrorCode.KAFKA_STORAGE_ERROR: RETRY_REFRESH,
    ErrorCode.FENCED_LEADER_EPOCH: RETRY_REFRESH,
    ErrorCode.UNKNOWN_LEADER_EPOCH: RETRY,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: RETRY,
    ErrorCode.UNKNOWN_TOPIC_ID: RETRY_REFRESH,
    Lost.DISCONNECTED: RETRY_REFRESH,
    Lost.TIMED_OUT: RETRY,
}


def rule_for(outcome: Outcome) -> Rule:
    """What the Java producer does, without what its transaction manager adds."""
    return RULES.get(outcome, FAIL)
