"""Settings of a cluster: one frozen value, checked when it is made.

Spans are milliseconds where the name ends in `_ms`, sizes bytes where it ends in `_bytes`. A value
of another type than a setting's is refused here: what would come of it later, far from whoever
wrote it, is an error of ours or another behaviour (a flush policy is compared by identity).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import Any, get_type_hints

from ottla.broker.errors import ConfigError
from ottla.idempotency.errors import UnknownProfileError
from ottla.idempotency.profiles import profile_named


class FlushPolicy(Enum):
    """When the log is synced (design.md, section 8)."""

    EACH_TURN = "each-turn"
    """Every turn, before anything that was written counts for a quorum."""
    INTERVAL = "interval"
    """Every `flush_interval_ms`; acknowledgements for a quorum wait for it."""
    OFF = "off"
    """Nobody waits: an append counts at once. Syncs go on behind it, and a crash loses what they
    had not reached yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """All settings, with the defaults a test wants. Raises `ConfigError` on nonsense."""

    election_timeout_ms: int = 500
    """A follower that hears nothing for 1x to 2x of this starts an election."""
    heartbeat_ms: int = 50
    """Between two beats from a node to each other; at most half of the election timeout."""
    default_partitions: int = 1
    """For topics whose creator names no count."""
    default_replication_factor: int = 3
    """For topics whose creator names none; never more than there are nodes."""
    auto_create_topics: bool = True
    """An unknown topic in a Metadata request is created, if the client allows it."""
    min_insync_replicas: int = 1
    """With acks=all: replicas in sync, before the append (else error 19) and before the answer
    (else 20). A topic's `min.insync.replicas` overrides it."""
    replica_lag_ms: int = 10_000
    """A replica that has not caught up for this long is no longer in sync (mission-A2)."""
    max_message_bytes: int = 1_048_588
    """Largest record batch accepted. A topic's `max.message.bytes` overrides it."""
    records_looked_into: int = 8
    """Most records an uncompressed batch may hold to be looked into, one by one, as Kafka does;
    larger ones only if their header gives a reason, compressed ones always."""
    max_request_bytes: int = 104_857_600
    """Largest frame; a client that announces more is cut off."""
    max_partitions_per_topic: int = 10_000
    """More are refused with INVALID_PARTITIONS."""
    max_inflight_requests: int = 64
    """Per connection; at the limit it is read no further until an answer has left."""
    max_inflight_bytes: int = 64 << 20
    """Per connection, of requests not yet answered."""
    connections_max_idle_ms: int = 600_000
    """A client silent for longer is dropped."""
    leader_queue_bytes: int = 32 << 20
    """Per partition: bytes proposed and not yet committed; more wait in the leader queue."""
    max_producers: int = 10_000
    """Per partition: idempotent producers remembered. One more makes the longest idle one go."""
    producer_expiry_ms: int = 86_400_000
    """A producer idle for longer is forgotten, by a decision in the log."""
    flush: FlushPolicy = FlushPolicy.EACH_TURN
    """When the log is synced."""
    flush_interval_ms: int = 100
    """With `FlushPolicy.INTERVAL`: between two syncs."""
    sync_stall_ms: int = 10_000
    """A sync that takes longer makes its leaders resign (mission-R5)."""
    link_delay_ms: float = 0.0
    """One-way delay between nodes of one process."""
    profile: str = "reference"
    """Whose rules idempotent producers meet; one of `ottla.idempotency.profiles.PROFILES`."""
    seed: int | None = None
    """Of election jitter; None draws one."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            _check_type(item.name, value)
            if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
                raise ConfigError(f"{item.name} is {value}; it must not be negative")
        if self.heartbeat_ms * 2 > self.election_timeout_ms:
            raise ConfigError(
                f"heartbeat_ms is {self.heartbeat_ms}; it must be at most half of "
                f"election_timeout_ms ({self.election_timeout_ms})"
            )
        try:
            profile_named(self.profile)
        except UnknownProfileError as error:
            raise ConfigError(f"profile: {error}") from None


@cache
def _types() -> Mapping[str, Any]:
    return get_type_hints(ClusterConfig)


def _check_type(name: str, value: object) -> None:
    wanted = _types()[name]
    if wanted is float:
        wanted = float | int
    if not isinstance(value, wanted):
        told = getattr(wanted, "__name__", str(wanted))
        raise ConfigError(f"{name} is {value!r}; it must be of type {told}")
