"""Kafka's order of checks of a produce request, as far as the odd requests of a run need it.

If a request has several flaws, its error is that of the check that Kafka does first (K-CHECKS). The
broker's order is spread over its handler, its partitions and its reading of batches. Here it is
written again, as one table that shares no code with them. A node may also *lack* something at the
moment: a topic, the leadership, replicas in sync. Nobody else knows that, so if such a check comes
first, its error is allowed, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, unique
from typing import NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.broker.profiles.profile import Profile


@unique
class Flaw(Enum):
    """A flaw of one partition of a request; the value is its name in scripts."""

    LENGTH = "length"
    """The length field of the batch is shorter than any batch."""
    MAGIC = "magic"
    """A version that does not exist."""
    TRANSACTIONAL = "transactional"
    """A transactional batch in a request without a transactional id."""
    ABSENT = "absent"
    """The partition does not exist."""
    TWICE = "twice"
    """The request names the partition more than once."""
    OLD_MAGIC = "old-magic"
    SEVERAL = "several"
    """It has more than one batch."""
    ACKS = "acks"
    """acks is none of -1, 0 and 1; of the whole request."""
    BASE_OFFSET = "base-offset"
    """The base offset is not 0."""
    CRC = "crc"
    CODEC = "codec"
    """A codec that does not exist."""
    COUNT = "count"
    """The count of records does not fit the last offset delta."""
    CONTROL = "control"
    """Only brokers write control batches."""
    NO_SEQUENCE = "no-sequence"
    """A producer id without a sequence."""


class Check(NamedTuple):
    """One row. `number` is the row of K-CHECKS."""

    number: int
    flaw: Flaw
    error: ErrorCode
    whole: bool = False
    """Whether every partition of the request gets the error."""


CHECKS: tuple[Check, ...] = (
    Check(1, Flaw.LENGTH, ErrorCode.CORRUPT_MESSAGE, whole=True),
    Check(1, Flaw.MAGIC, ErrorCode.CORRUPT_MESSAGE, whole=True),
    Check(2, Flaw.TRANSACTIONAL, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, whole=True),
    Check(4, Flaw.ABSENT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    # Our own rule: Kafka drops the earlier batch silently (docs/not-implemented.md).
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
"""The first row whose flaw a partition has decides its error. If partitions have flaws of the whole
request, the first of these partitions decides the error of all."""

LACKS: tuple[tuple[int, ErrorCode], ...] = (
    (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),  # A node that does not know any topics yet.
    (10, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (12, ErrorCode.NOT_ENOUGH_REPLICAS),
)
"""What a node may lack: the step at which that is checked, and its error."""

UNREADABLE = frozenset({Flaw.OLD_MAGIC, Flaw.SEVERAL})
"""Flaws for which a batch is refused before its partition is asked (step 5)."""
JUDGED = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.POLICY_VIOLATION)
"""For NO_SEQUENCE where the rules of idempotence judge it: it follows nothing, or its producer
finds no room."""


class Part(NamedTuple):
    """One partition of an odd request. It has at least one flaw, so nothing of it is stored."""

    partition: int
    flaws: frozenset[Flaw]


def answers(parts: Sequence[Part], profile: Profile) -> list[tuple[ErrorCode, ...]]:
    """The errors that each partition may get: Kafka's for its flaws, or the profile's, then those
    for what a node may lack."""
    for part in parts:
        for check in CHECKS:
            if check.whole and check.flaw in part.flaws:
                return [(check.error,) for _ in parts]
    if profile.acks_checked_first and any(Flaw.ACKS in part.flaws for part in parts):
        return [(ErrorCode.INVALID_REQUIRED_ACKS,) for _ in parts]
    return [_answers(each.flaws, profile) for each in parts]


def _answers(flaws: frozenset[Flaw], profile: Profile) -> tuple[ErrorCode, ...]:
    first = next(check for check in CHECKS if check.flaw in flaws)
    lacks = (error for number, error in LACKS if number <= first.number)
    if first.flaw is Flaw.NO_SEQUENCE and profile.negative_sequences_judged:
        return (*JUDGED, *lacks)
    return (first.error, *lacks)
