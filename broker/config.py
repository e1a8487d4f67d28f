"""Settings of a cluster: one frozen value, checked when it is made.

Names that end in `_ms` are milliseconds, names that end in `_bytes` are bytes. A value of a wrong
type, or out of range, is refused here. Later it would cause an error, or another behaviour, far
from the line that set it. A flush policy may be given by its text.

`Settings` gives type checkers the same keywords of `Cluster`, by name and type. A test compares the
two.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, Literal, TypedDict, cast

from ottla.broker.arguments.arguments import INT32_MAX, choice, is_a, number, text, truth, whole
from ottla.broker.arguments.spelling import no_such, shown
from ottla.broker.errors import ConfigError, UnknownProfileError
from ottla.broker.profiles.named import profile_named

MOST = 10**12
"""The largest value of most settings; no size or time needs more."""
LEAST: dict[str, int] = {
    "flush_interval_ms": 0,
    "link_delay_ms": 0,
    "replica_lag_ms": 0,
    "seed": 0,
    "sync_stall_ms": 0,
    "entry_cache_bytes": 0,
}
"""Settings that may be 0. All others are at least 1, because a cluster with 0 would do nothing."""
MOST_OF: dict[str, int] = {
    "default_partitions": INT32_MAX,
    "default_replication_factor": INT32_MAX,
    "max_message_bytes": INT32_MAX,
    "max_partitions_per_topic": 1 << 20,
    "max_request_bytes": INT32_MAX,
    "min_insync_replicas": INT32_MAX,
    "seed": 2**63 - 1,
}
"""Settings that may not be as large as `MOST`."""
ARGUMENTS = ("nodes", "host", "port", "advertised", "data_dir", "topics", "without_nodes", "config")
"""Arguments of a cluster that are not settings."""
Flush = Literal["each-turn", "interval", "off"]


class FlushPolicy(Enum):
    """When the log is synced."""

    EACH_TURN = "each-turn"
    """In every turn. What was written counts for a quorum only after the sync."""
    INTERVAL = "interval"
    """Every `flush_interval_ms`. What was written counts for a quorum only after the sync."""
    OFF = "off"
    """In the background. What was written counts for a quorum at once, and a crash loses what was
    not yet synced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """All settings, with defaults for tests. Raises `ConfigError` for a value out of the limits
    that each docstring names; the limits are those of `LEAST` and `MOST_OF`."""

    election_timeout_ms: int = 500
    """A follower that hears nothing from its leader for 1 to 2 times as long starts an election. At
    least twice `heartbeat_ms`. From 1 to 1_000_000_000_000."""
    heartbeat_ms: int = 50
    """Time between two heartbeats from a node to each other node. At most half of
    `election_timeout_ms`. From 1 to 1_000_000_000_000."""
    default_partitions: int = 1
    """Partitions of a topic whose creator gives no number. At most `max_partitions_per_topic`. From
    1 to 2_147_483_647."""
    default_replication_factor: int = 3
    """Replicas of a topic whose creator gives no number. With fewer nodes, it is the number of
    nodes. From 1 to 2_147_483_647."""
    auto_create_topics: bool = True
    """Whether a Metadata request creates unknown topics that it names, if the client allows it."""
    min_insync_replicas: int = 1
    """With acks=all, so many replicas must be in sync before the append (else error 19) and before
    the answer (else error 20). A topic's `min.insync.replicas` overrides it. From 1 to
    2_147_483_647."""
    replica_lag_ms: int = 10_000
    """A replica that has not caught up for this long is no longer in sync (promise-A2). From 0 to
    1_000_000_000_000."""
    max_message_bytes: int = 1_048_588
    """Largest record batch accepted. A topic's `max.message.bytes` overrides it. From 1 to
    2_147_483_647."""
    max_request_bytes: int = 104_857_600
    """Largest request. The connection of a client that announces a larger one is closed. Requests
    without records may have at most 4 MiB. From 1 to 2_147_483_647."""
    queued_max_request_bytes: int = 256 << 20
    """Per node: bytes of requests, from all clients together, that have not arrived whole or must
    wait to begin. Beyond it, no client is read until there is room. One request of
    `max_request_bytes` always fits. From 1 to 1_000_000_000_000."""
    max_partitions_per_topic: int = 1_000
    """A topic with more is refused with INVALID_PARTITIONS, because it would make turns of the loop
    long. From 1 to 1_048_576."""
    max_inflight_requests: int = 64
    """Per connection: requests not yet answered. At the limit, the node stops reading from it until
    an answer is sent. A profile with one request at a time ignores it. From 1 to
    1_000_000_000_000."""
    max_inflight_bytes: int = 64 << 20
    """Per connection: bytes of requests not yet answered. At the limit, the node stops reading from
    it until an answer is sent. From 1 to 1_000_000_000_000."""
    connections_max_idle_ms: int = 600_000
    """The connection of a client that is silent for longer is closed. From 1 to
    1_000_000_000_000."""
    leader_queue_bytes: int = 32 << 20
    """Per partition: bytes proposed and not yet committed. What exceeds it waits in the leader
    queue. From 1 to 1_000_000_000_000."""
    max_producers: int = 10_000
    """Per partition: idempotent producers that are remembered. If one more comes, the longest idle
    one is forgotten. From 1 to 1_000_000_000_000."""
    producer_expiry_ms: int = 86_400_000
    """A producer that is idle for longer is forgotten, by a decision in the log. From 1 to
    1_000_000_000_000."""
    flush: FlushPolicy = FlushPolicy.EACH_TURN
    """When the log is synced."""
    flush_interval_ms: int = 100
    """With `FlushPolicy.INTERVAL`: time between two syncs. From 0 to 1_000_000_000_000."""
    sync_stall_ms: int = 10_000
    """If a sync takes longer, the leaders on its node resign (promise-R5). From 0 to
    1_000_000_000_000."""
    entry_cache_bytes: int = 32 << 20
    """With a data folder, per node: bytes of durable entries that stay in memory, for followers and
    consumers near the end of a log. After a start, they are the last ones of its logs. From 0 to
    1_000_000_000_000."""
    link_delay_ms: float = 0.0
    """One-way delay of messages between the nodes of one process. Twice this, plus `heartbeat_ms`,
    must fit into `election_timeout_ms`. From 0 to 1_000_000_000_000."""
    profile: str = "reference"
    """Whose behaviour the cluster shows: the name of a profile or an alias, in
    `ottla.broker.profiles.named`; kept as the full name."""
    seed: int | None = None
    """Seed of the election timeouts' jitter; None draws one. From 0 to
    9_223_372_036_854_775_807."""

    def __post_init__(self) -> None:
        for item in fields(self):
            taken = _taken(item.name, item.default, getattr(self, item.name))
            object.__setattr__(self, item.name, taken)
        if self.heartbeat_ms * 2 > self.election_timeout_ms:
            raise ConfigError(
                f"heartbeat_ms is {self.heartbeat_ms}; it must be at most half of "
                f"election_timeout_ms ({self.election_timeout_ms})"
            )
        if self.default_partitions > self.max_partitions_per_topic:
            raise ConfigError(
                f"default_partitions is {self.default_partitions}; a topic has at most "
                f"max_partitions_per_topic ({self.max_partitions_per_topic})"
            )
        if self.link_delay_ms * 2 + self.heartbeat_ms > self.election_timeout_ms:
            raise ConfigError(
                f"link_delay_ms is {self.link_delay_ms:g}; there and back, and heartbeat_ms "
                f"({self.heartbeat_ms}), must fit into election_timeout_ms "
                f"({self.election_timeout_ms}), or nobody is elected"
            )
        try:
            object.__setattr__(self, "profile", profile_named(self.profile).name)
        except UnknownProfileError as error:
            raise ConfigError(f"profile: {error}") from None

    def slow_elections(self) -> str:
        """A hint for the error after a wait in vain: which settings make elections slow, if any."""
        waits = self.flush is FlushPolicy.INTERVAL and self.flush_interval_ms
        if not waits or waits * 2 <= self.election_timeout_ms:
            return ""
        return (
            f" (votes wait for a sync: flush_interval_ms is {waits}, and should be at most half of "
            f"election_timeout_ms, {self.election_timeout_ms})"
        )


def _taken(name: str, default: object, value: object) -> object:
    """A setting's value, checked by the type of its default. Raises `ConfigError`."""
    if isinstance(default, bool):
        return truth(name, value)
    if isinstance(default, FlushPolicy):
        return choice(name, value, FlushPolicy)
    if isinstance(default, str):
        return text(name, value)
    if default is None and value is None:
        return None
    least, most = LEAST.get(name, 1), MOST_OF.get(name, MOST)
    if isinstance(default, float):
        return number(name, value, least, most)
    return whole(name, value, least, most)


class Settings(TypedDict, total=False):
    """The fields of `ClusterConfig`, as keywords of `Cluster` and `AsyncCluster`."""

    election_timeout_ms: int
    heartbeat_ms: int
    default_partitions: int
    default_replication_factor: int
    auto_create_topics: bool
    min_insync_replicas: int
    replica_lag_ms: int
    max_message_bytes: int
    max_request_bytes: int
    queued_max_request_bytes: int
    max_partitions_per_topic: int
    max_inflight_requests: int
    max_inflight_bytes: int
    connections_max_idle_ms: int
    leader_queue_bytes: int
    max_producers: int
    producer_expiry_ms: int
    flush: FlushPolicy | Flush
    flush_interval_ms: int
    sync_stall_ms: int
    entry_cache_bytes: int
    link_delay_ms: float
    profile: str
    seed: int | None


def with_settings(config: ClusterConfig | None, settings: Settings) -> ClusterConfig:
    """A configuration with some settings changed. Raises `ConfigError`; for a misspelt setting, it
    names the one that is most like it."""
    if config is not None and not is_a(config, ClusterConfig):
        raise ConfigError(f"config is {shown(config)}; a ClusterConfig is wanted")
    names = [item.name for item in fields(ClusterConfig)]
    for name in settings:
        if name not in names:
            known = (*names, *ARGUMENTS)
            raise ConfigError(f"no such setting: {no_such(name, known, all_of_them=True)}")
    changes = cast(dict[str, Any], settings)  # each is checked when the config is made
    return replace(config, **changes) if config is not None else ClusterConfig(**changes)
