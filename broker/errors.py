"""Errors: Kafka's codes, and Ottla's own exceptions with the code each one becomes.

Decisions of the cores are values and name a *reason*; the tables here say which Kafka code a reason
is on the wire (facts: Apache Kafka 4.3.1, error table of its protocol guide). Exceptions are for
callers of the Python API and for operating errors only. Each class says whether its outcome is
*definite* (it did not and will not happen) or not.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """Kafka's error codes, those that Ottla answers with."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    KAFKA_STORAGE_ERROR = 56
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87
    THROTTLING_QUOTA_EXCEEDED = 89
    UNKNOWN_TOPIC_ID = 100
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115


class OttlaError(Exception):
    """Base of everything Ottla raises on purpose."""

    definite = True
    """Whether the thing asked for certainly did not and will not happen."""


class ConfigError(OttlaError):
    """A setting, flag or argument makes no sense; the text says what to do."""


class UnknownTopicError(OttlaError):
    """The topic or partition does not exist."""


class NodeStateError(OttlaError):
    """The node is not in the state the call needs (killing a dead node, pausing a paused one)."""


class ClusterTimeoutError(OttlaError):
    """Something awaited (a leader, a heal, a topic) did not come within the time given."""

    definite = False


class SnapshotFormatError(OttlaError):
    """A snapshot was written by a version of Ottla whose format this one does not read."""


class RequestFailedError(OttlaError):
    """The cluster refused a request; `code` is Kafka's error code."""

    def __init__(self, code: ErrorCode, message: str = ""):
        super().__init__(f"{code.name}: {message}" if message else code.name)
        self.code = code
        self.definite = code not in INDEFINITE_CODES


INDEFINITE_CODES = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Codes after which the data may still be stored (facts/kafka.md 1.6; Jepsen's `info`)."""
