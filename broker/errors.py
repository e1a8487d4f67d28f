"""Errors: Kafka's codes, and Ottla's own exceptions with the code each one becomes.

Decisions of the cores are values and name a *reason*; the tables here say which Kafka code a reason
is on the wire (Apache Kafka 4.3.1; error codes of the Kafka protocol guide). Exceptions are for
callers of the Python API and for operating errors only. Each class says whether its outcome is
*definite* (it did not and will not happen) or not.
"""

from __future__ import annotations

from enum import IntEnum

from ottla.idempotency.rules import RejectReason
from ottla.log.record_batch import BatchDefect


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
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    KAFKA_STORAGE_ERROR = 56
    UNKNOWN_PRODUCER_ID = 59
    FETCH_SESSION_ID_NOT_FOUND = 70
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    INVALID_RECORD = 87
    THROTTLING_QUOTA_EXCEEDED = 89
    UNKNOWN_TOPIC_ID = 100
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115


DEFECT_CODES: dict[BatchDefect, ErrorCode] = {
    BatchDefect.BAD_LENGTH_FIELD: ErrorCode.CORRUPT_MESSAGE,
    BatchDefect.UNKNOWN_MAGIC: ErrorCode.CORRUPT_MESSAGE,
    BatchDefect.NO_BATCH: ErrorCode.INVALID_RECORD,
    BatchDefect.OLD_MAGIC: ErrorCode.INVALID_RECORD,
    BatchDefect.TOO_SHORT: ErrorCode.CORRUPT_MESSAGE,
    BatchDefect.MALFORMED_SECOND_BATCH: ErrorCode.CORRUPT_MESSAGE,
    BatchDefect.SEVERAL_BATCHES: ErrorCode.INVALID_RECORD,
    BatchDefect.BASE_OFFSET_NOT_ZERO: ErrorCode.INVALID_RECORD,
    BatchDefect.TOO_LARGE: ErrorCode.MESSAGE_TOO_LARGE,
    BatchDefect.CRC_MISMATCH: ErrorCode.CORRUPT_MESSAGE,
    BatchDefect.UNKNOWN_CODEC: ErrorCode.UNKNOWN_SERVER_ERROR,
    BatchDefect.NEGATIVE_LAST_OFFSET_DELTA: ErrorCode.INVALID_RECORD,
    BatchDefect.NO_RECORDS: ErrorCode.INVALID_RECORD,
    BatchDefect.COUNT_MISMATCH: ErrorCode.INVALID_RECORD,
    BatchDefect.CONTROL_BATCH: ErrorCode.INVALID_RECORD,
    BatchDefect.NO_SEQUENCE: ErrorCode.INVALID_RECORD,
    BatchDefect.NOT_INFLATABLE: ErrorCode.UNKNOWN_SERVER_ERROR,
    BatchDefect.BROKEN_RECORDS: ErrorCode.INVALID_RECORD,
    BatchDefect.ENDLESS_LENGTH: ErrorCode.UNKNOWN_SERVER_ERROR,
    BatchDefect.BAD_TIMES: ErrorCode.INVALID_TIMESTAMP,
    BatchDefect.WRONG_PLACES: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What is wrong with a batch's bytes, on the wire (K-CHECKS, K-CODES, K-BATCHES)."""

FAULTY_RECORDS: dict[ErrorCode, str] = {
    ErrorCode.INVALID_TIMESTAMP: (
        "One or more records have been rejected due to invalid timestamp"
    ),
}
"""What Kafka says of a batch beside what is wrong with each of its records (K-FIELDS)."""

REQUEST_WIDE_DEFECTS: tuple[BatchDefect, ...] = (
    BatchDefect.BAD_LENGTH_FIELD,
    BatchDefect.UNKNOWN_MAGIC,
)
"""Defects of one batch that fail every partition of its request (K-CHECKS 1)."""

REASON_CODES: dict[RejectReason, ErrorCode] = {
    # Sequences are judged before (NO_SEQUENCE): what is left is an epoch below -1.
    RejectReason.MALFORMED: ErrorCode.INVALID_PRODUCER_EPOCH,
    RejectReason.TABLE_FULL: ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    RejectReason.TOO_MANY: ErrorCode.POLICY_VIOLATION,
    RejectReason.STALE_EPOCH: ErrorCode.INVALID_PRODUCER_EPOCH,
    RejectReason.EPOCH_START: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    RejectReason.GAP: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    RejectReason.UNKNOWN: ErrorCode.UNKNOWN_PRODUCER_ID,
    RejectReason.BACKWARDS: ErrorCode.INVALID_REQUEST,
    RejectReason.OFFSET_UNKNOWN: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Why the idempotency rules refuse a batch, on the wire (K-RULES)."""

_NO_LOG_START = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


def omits_log_start(error: ErrorCode) -> bool:
    """Whether a produce answer with this error leaves log_start_offset at -1 (K-CODES)."""
    return error in _NO_LOG_START


class OttlaError(Exception):
    """Base of everything Ottla raises on purpose."""

    definite = True
    """Whether the thing asked for certainly did not and will not happen."""


class FrameError(OttlaError):
    """Bytes from a peer that are no request (or, for a client, no response) of the protocol."""


class ConfigError(OttlaError):
    """A setting, flag or argument makes no sense; the text says what to do."""


class UnknownProfileError(ConfigError):
    """Somebody asked for a profile that does not exist. The text lists those that do."""


class UnusableAddressError(ConfigError, OSError):
    """There is no such host on this machine, or a port is in use; the text names the argument.

    `errno` is the system's, `why` what the system said. Raised at a start."""

    def __init__(self, number: int | None, text: str, why: str):
        super().__init__(number, text)
        self.why = why

    def __str__(self) -> str:
        return str(self.strerror)


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
        ErrorCode.NOT_CONTROLLER,
    }
)
"""Codes after which the data may still be stored (K-CODES; Jepsen's `info`), or a
controller command still be applied."""
