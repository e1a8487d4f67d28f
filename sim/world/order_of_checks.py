"""Kafka's order of checks of a produce request, as far as odd requests of a run come.

What a request gets that has several things wrong with it is what Kafka finds first (K-CHECKS). The
broker's order is spread over its handler, its partitions and its reading of batches; here it stands
once more, as one table that shares no code with them. What a node *lacks* at the moment, a topic,
the leadership, replicas in sync, is checked in between and known to nobody else: where such a check
comes first, its error is as good an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, unique
from typing import NamedTuple

from ottla.broker.errors import ErrorCode


@unique
class Flaw(Enum):
    """What is wrong with one partition of a request; the value is what scripts call it."""

    LENGTH = "length"
    """The batch says to be shorter than any batch."""
    MAGIC = "magic"
    """A version that there is not."""
    TRANSACTIONAL = "transactional"
    """In a request without a transactional id."""
    ABSENT = "absent"
    """There is no such partition."""
    TWICE = "twice"
    """The request names the partition more than once."""
    OLD_MAGIC = "old-magic"
    SEVERAL = "several"
    """More than one batch."""
    ACKS = "acks"
    """None of -1, 0 and 1; of the whole request."""
    BASE_OFFSET = "base-offset"
    """It is not 0."""
    CRC = "crc"
    CODEC = "codec"
    """One that there is not."""
    COUNT = "count"
    """Of records: not what the last offset says."""
    CONTROL = "control"
    """Only brokers write control batches."""
    NO_SEQUENCE = "no-sequence"
    """A producer id without one."""


class Check(NamedTuple):
    """One row. `number` is the row of K-CHECKS."""

    number: int
    flaw: Flaw
    error: ErrorCode
    whole: bool = False
    """The error is that of every partition of the request."""


CHECKS: tuple[Check, ...] = (
    Check(1, Flaw.LENGTH, ErrorCode.CORRUPT_MESSAGE, whole=True),
    Check(1, Flaw.MAGIC, ErrorCode.CORRUPT_MESSAGE, whole=True),
    Check(2, Flaw.TRANSACTIONAL, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, whole=True),
    Check(4, Flaw.ABSENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    # Ours: Kafka drops the earlier batch without a word (docs/not-implemented.md).
    Check(5, Flaw.TWICE, ErrorCode.INVALID_REQUEST),
    Check(5, Flaw.OLD_MAGIC, ErrorCode.INVALID_RECORD),
    Check(5, Flaw.SEVERAL, ErrorCode.INVALID_RECORD),
    Check(8, Flaw.ACKS, ErrorCode.INVALID_REQUIRED_ACKS),
    Check(13, Flaw.BASE_OFFSET, ErrorCode.INVALID_RECORD),
    Check(15, Flaw.CRC, ErrorCode.CORRUPT_MESSAGE),
    Check(16, Flaw.CODEC, ErrorCode.UNKNOWN_SERVER_ERROR),
    Check(17, Flaw.COUNT, ErrorCode.INVALID_RECORD),
    Check(17, Flaw.CONTROL, ErrorCode.INVALID_RECORD),
    Check(17, Flaw.NO_SEQUENCE, ErrorCode.INVALID_RECORD),
)
"""The first row whose flaw is there decides; of the rows for the whole request, that of the first
partition that has one."""

LACKS: tuple[tuple[int, ErrorCode], ...] = (
    (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),  # A node that knows no topics yet sends clients on.
    (10, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (12, ErrorCode.NOT_ENOUGH_REPLICAS),
)
"""What a node may lack, by the step at which that is found."""


class Part(NamedTuple):
    """One partition of an odd request. It has at least one flaw, so nothing of it is stored."""

    partition: int
    flaws: frozenset[Flaw]


def answers(parts: Sequence[Part]) -> dict[int, tuple[ErrorCode, ...]]:
    """What each partition may be answered: what Kafka says of its flaws, and behind that what a
    node may say that lacks something."""
    for part in parts:
        for check in CHECKS:
            if check.whole and check.flaw in part.flaws:
                return {each.partition: (check.error,) for each in parts}
    return {each.partition: _answers(each.flaws) for each in parts}


def _answers(flaws: frozenset[Flaw]) -> tuple[ErrorCode, ...]:
    first = next(check for check in CHECKS if check.flaw in flaws)
    return (first.error, *(error for number, error in LACKS if number <= first.number))
