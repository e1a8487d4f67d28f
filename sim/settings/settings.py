"""What a run is: one flat, frozen value, read from TOML or drawn by the swarm.

Spans end in `_us` or `_ms`, sizes in `_bytes`, rates per million in `_ppm`. Every value is a whole
number, a word or a truth value. So a configuration has one spelling and one `name` (a hash), and a
run is (seed, configuration, commit).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import blake2b
from typing import Any

import msgpack

from ottla.broker.arguments.spelling import no_such
from ottla.broker.config import ClusterConfig, FlushPolicy
from ottla.broker.errors import ConfigError, UnknownProfileError
from ottla.broker.node.replica_factory import LogLimits
from ottla.broker.profiles.named import profile_named
from ottla.raft.types import Micros, NodeId
from ottla.sim.mutants.catalogue import check_mutants
from ottla.sim.plugins.files import check as check_plugins
from ottla.sim.plugins.own import OwnProducer, added
from ottla.sim.settings.link_times import CLIENTS, groups_of, majority_us, near_us, round_trips
from ottla.sim.settings.ranges import AROUND_BYTES, FATES, check_fates, check_kind, check_ranges
from ottla.sim.settings.spans import check_elections, check_syncs
from ottla.sim.settings.spelling import as_toml

SETTLE_MS = 60_000
FETCH_WAIT_US: Micros = 500_000
"""How long a consumer's fetch waits for new records (fetch.max.wait.ms)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Settings of one run. Raises `ConfigError` for impossible values; it names the setting."""

    # The cluster
    nodes: int = 3
    """Numbered from 1; each has a replica of the controller's log."""
    replicas: int = 3
    """Replicas of each partition; at most one on each node."""
    partitions: int = 1
    """Partitions of the one topic."""
    profile: str = "reference-strict"
    """Not the broker's own default: *reference* takes an unknown producer at any sequence, which
    loses records in a rare race (decision 0012), and a sweep finds that."""
    min_insync: int = 1
    max_message_bytes: int = 1_048_588
    """Larger batches are refused: the Java client splits them, librdkafka gives them up."""
    election_timeout_ms: int = 500
    heartbeat_ms: int = 50
    replica_lag_ms: int = 10_000
    leader_queue_bytes: int = 32 << 20
    max_producers: int = 1000
    producer_expiry_ms: int = 86_400_000
    flush: str = "each-turn"
    flush_interval_ms: int = 100
    sync_stall_ms: int = 2_000
    max_append_bytes: int = 1 << 20
    """Bytes of entries in one AppendEntries; one entry always fits."""
    max_append_entries: int = 500
    """Entries in one AppendEntries."""
    max_inflight_bytes: int = 16 << 20
    """Bytes of entries that a follower was sent and has not acknowledged; one entry always fits."""
    snapshot_chunk_bytes: int = 256 << 10
    """Bytes of a snapshot in one InstallSnapshot."""
    catalog_entries: int = 1_000
    """Applied entries of the controller's log between two snapshots of the catalog."""
    connection_requests: int = 64
    """Open requests of one connection on a node; 1 is Kafka's way."""

    # What it runs on
    rtt_us: int = 400
    """Least round trip between two nodes."""
    links: str = ""
    """Round trips of single links in microseconds, such as "1-2:20000 c-3:400"
    (`sim/settings/link_times.py`)."""
    jitter_us: int = 200
    """Mean of the random time on top, exponential, each way."""
    client_rtt_us: int = 400
    """Least round trip between a client and a node."""
    client_jitter_us: int = 200
    """Mean of the random time on top, exponential, each way."""
    client_bytes_per_ms: int = 0
    """How many bytes of a client's requests one connection carries in a millisecond; 0: no
    limit."""
    sync_us: int = 300
    """Least time of a sync of a disk."""
    sync_jitter_us: int = 200
    """Mean of the random time on top, exponential."""
    turn_us: int = 20
    """Time until a node takes its next turn: all that arrives meanwhile shares that turn."""

    # What clients do
    load_ms: int = 20_000
    """The time over which records are handed out; faults end with it."""
    records: int = 360
    """Records of all producers together."""
    arrivals: str = "bursts"
    """How records are handed out: in bursts and pauses, at even distances, or at random (Poisson);
    the same number in the same time."""
    producers: int = 2
    """How many producers; each is a client of its own."""
    consumers: int = 1
    """How many consumers; each reads all partitions from the start."""
    client_model: str = "both"
    """java, librdkafka, or both in turn."""
    idempotent: bool = True
    """Without it, a record that is sent again may be stored again, and sequences are not
    checked."""
    acks: int = -1
    """The acks that producers ask for: -1 (all), 1 or 0."""
    in_flight: int = 5
    """Open produce requests of one producer to one node, at most."""
    batch_records: int = 4
    """Records in a batch, at most."""
    record_bytes: int = 16
    """Bytes of a record's value."""
    fetch_bytes: int = 1 << 20
    """About how many bytes a consumer gets at once; at least one batch."""
    request_timeout_ms: int = 1_500
    """How long a client waits for an answer before it gives the connection up."""
    delivery_timeout_ms: int = 30_000
    """After this time a producer gives a batch up."""
    retry_backoff_ms: int = 50
    """Time between two attempts of a client."""
    metadata_max_age_ms: int = 5_000
    """After this time clients ask for the leaders although nothing told them to."""
    leader_epochs: bool = True
    """Whether clients know how old metadata is (KIP-320); without, they believe the last answer."""
    first_sequence: int = 0
    """The sequence with which the first epoch of each partition begins. Not 0: only for profiles
    that allow it (0012)."""

    # What goes wrong
    loss_ppm: int = 0
    """Messages between nodes that never arrive."""
    twice_ppm: int = 0
    """Messages between nodes that arrive twice."""
    late_ppm: int = 0
    """Messages between nodes that take thirty times as long, so that others overtake them."""
    reset_ppm: int = 0
    """Requests or answers of clients at which the connection breaks."""
    restart_ppm: int = 0
    """Bursts after which a producer is replaced by one with a new id."""
    slow_sync_ppm: int = 0
    """Syncs that take a hundred times as long."""
    fault_every_ms: int = 0
    """Mean time between two programs of the nemesis; 0: none."""
    faults: str = ""
    """The programs of the nemesis that take part, separated by spaces; empty: all."""

    mutants: str = ""
    """Safety mechanisms that are switched off (`sim/mutants/catalogue.py`), by id."""

    # How it ends
    leader_left_out: bool = False
    """Whether the leader of partition 0 is not among the nodes that are healed first."""
    probes: bool = False
    """Whether one more record is sent, until it is stored, in each partition that the healed nodes
    must serve."""
    settle_ms: int = SETTLE_MS
    """How long everything may take to settle when nothing goes wrong any more; at its default
    longer if elections or clients are slow (`bound_ms`)."""

    delays: str = "alike"
    """*own*: each direction of each link draws its own mean and shape (`sim/world/network.py`)."""

    fault_kinds: int = 0
    """How many programs of the nemesis take part if none is named; 0: about half."""

    plugins: str = ""
    """Files that `--plugin` named, by name and text: somebody's own invariants, faults, mutants and
    clients (docs/how-to/extend-the-simulator.md)."""

    said: frozenset[str] = field(default=frozenset(), compare=False)
    """Not a setting: the names of the settings that a person set, even to the default. The swarm
    does not change them; what it returns has none."""

    def __post_init__(self) -> None:
        check_plugins(self.plugins)
        own = [each.id for each in added(self.plugins, OwnProducer)]
        check_ranges({name: getattr(self, name) for name in SETTINGS}, own)
        if self.replicas > self.nodes:
            raise ConfigError(f"replicas is {self.replicas}, but there are {self.nodes} nodes")
        if self.min_insync > self.replicas:
            raise ConfigError(
                f"min_insync is {self.min_insync}, but replicas is {self.replicas}: nothing "
                "would ever be acknowledged with acks=all"
            )
        try:
            object.__setattr__(self, "profile", profile_named(self.profile).name)
        except UnknownProfileError as error:
            raise ConfigError(f"profile: {error}") from None
        self.cluster_config()
        self._check_sequences()
        if self.flush != FlushPolicy.OFF.value:
            check_syncs(self.sync_us, self.sync_jitter_us, self.sync_stall_ms)
        check_fates({name: getattr(self, name) for name in FATES})
        round_trips(self.links, self.nodes)
        check_mutants(self.mutants, self.plugins)

    @property
    def name(self) -> str:
        """Hash of these settings: 16 hex digits."""
        told = msgpack.packb(sorted(self.values().items()))
        return blake2b(told, digest_size=8).hexdigest()

    def values(self) -> dict[str, int | str | bool]:
        """Every setting by its name. Without `plugins` if there are none: so a run without them
        keeps its `name`."""
        told = asdict(self)
        del told["said"]
        if not self.plugins:
            del told["plugins"]
        return told

    def cluster_config(self) -> ClusterConfig:
        """The configuration of the nodes."""
        return ClusterConfig(
            election_timeout_ms=self.election_timeout_ms,
            heartbeat_ms=self.heartbeat_ms,
            min_insync_replicas=self.min_insync,
            max_message_bytes=self.max_message_bytes,
            replica_lag_ms=self.replica_lag_ms,
            leader_queue_bytes=self.leader_queue_bytes,
            max_producers=self.max_producers,
            producer_expiry_ms=self.producer_expiry_ms,
            flush=FlushPolicy(self.flush),
            flush_interval_ms=self.flush_interval_ms,
            sync_stall_ms=self.sync_stall_ms,
            max_inflight_requests=self.connection_requests,
            profile=self.profile,
        )

    def log_limits(self) -> LogLimits:
        """How much of a log the nodes send, and keep, at once."""
        return LogLimits(
            append_bytes=self.max_append_bytes,
            append_entries=self.max_append_entries,
            inflight_bytes=self.max_inflight_bytes,
            chunk_bytes=self.snapshot_chunk_bytes,
            controller_entries=self.catalog_entries,
        )

    @property
    def waits_for_all_in_sync(self) -> bool:
        """Whether readers, and with them acks=all, wait for all replicas that are in sync."""
        return profile_named(self.profile).waits_for_all_in_sync

    @property
    def in_sync_needed(self) -> int:
        """For how many replicas in sync readers may have to wait: the minimum, or for all."""
        return self.replicas if self.waits_for_all_in_sync else min(self.min_insync, self.replicas)

    @property
    def idle_us(self) -> Micros:
        """How long a producer must be idle at its leader to be forgotten; 0: the times of its
        records decide that, or each of its epochs is forgotten by itself."""
        profile = profile_named(self.profile)
        otherwise = profile.expires_by_timestamp or profile.rulebook.epochs_apart
        return 0 if otherwise else self.producer_expiry_ms * 1_000

    @property
    def client_trip_us(self) -> Micros:
        """Least round trip between clients and the node that is farthest from them: that node may
        lead."""
        trips = round_trips(self.links, self.nodes)
        nodes = range(1, self.nodes + 1)
        return max(trips.get((CLIENTS, each), self.client_rtt_us) for each in nodes)

    @property
    def patience_ms(self) -> int:
        """The least time that a client has to wait for an answer, so that most come in time: four
        times what a request takes on average, to the node and among the nodes, after all that may
        be in flight with it."""
        trip = self.client_trip_us + self.farthest[0]
        trip += 2 * (self.client_jitter_us + self.jitter_us + self.turn_us)
        line_ms = self.line_ms(self.in_flight * self.batch_records)
        return 4 * (trip + self.syncing_us) // 1_000 + 4 * line_ms

    def line_ms(self, records: int) -> int:
        """How long a client's line takes for so many records."""
        rate = self.client_bytes_per_ms
        return records * (self.record_bytes + AROUND_BYTES) // rate if rate else 0

    @property
    def syncing_us(self) -> int:
        """The least time that a wait for a sync takes."""
        if self.flush == FlushPolicy.OFF.value:
            return 0
        waits = self.flush == FlushPolicy.INTERVAL.value
        return self.sync_us + self.sync_jitter_us + waits * 1_000 * self.flush_interval_ms

    @property
    def farthest(self) -> tuple[Micros, tuple[NodeId, ...]]:
        """Of the groups of nodes, the one whose nearest majority is farthest apart, after that
        distance (least round trip); 0 if no group has a second node."""
        trips = round_trips(self.links, self.nodes)
        partitions = self.partitions if trips else 1  # without links all are equally far apart
        groups = groups_of(self.nodes, partitions, self.replicas)
        return max((majority_us(each, trips, self.rtt_us), each) for each in groups)

    def _check_sequences(self) -> None:
        """Raises `ConfigError` if the first sequence is not 0 and the profile does not let an
        unknown producer that was not forgotten begin there."""
        if self.first_sequence and not profile_named(self.profile).rulebook.begins_anywhere:
            raise ConfigError(
                f"first_sequence is {self.first_sequence}, but with {self.profile} producers "
                "begin at 0; name another profile, such as reference"
            )

    def check_lag(self) -> None:
        """Raises `ConfigError` if a follower cannot stay in sync: one with nothing to acknowledge
        is only heard by heartbeats."""
        least = 2 * self.heartbeat_ms + (self.farthest[0] + self.syncing_us) // 1_000
        if self.min_insync > 1 and self.replica_lag_ms < least:
            raise ConfigError(
                f"replica_lag_ms is {self.replica_lag_ms}, but a follower is heard of every "
                f"{self.heartbeat_ms} ms: min_insync ({self.min_insync}) needs at least {least}"
            )

    def near(self, nodes: Collection[NodeId], needed: int) -> bool:
        """Whether one of these nodes is near enough to `needed` of them, itself included, to be
        elected by them and stay leader (`check_elections`)."""
        trip_us = near_us(nodes, needed, round_trips(self.links, self.nodes), self.rtt_us)
        timeout_us = 1_000 * self.election_timeout_ms
        return not trip_us or trip_us < min(timeout_us, 2 * (timeout_us - self.syncing_us))

    def check_elections(self) -> None:
        """Raises `ConfigError` if no leader could be elected and stay."""
        check_elections(self.election_timeout_ms, self.syncing_us, *self.farthest)

    @property
    def bound_ms(self) -> int:
        """How long the end of a run may take: `settle_ms`. At its default at least as long as any
        of these needs: twenty elections or retries; two round trips for each record; consumers that
        get little at a time; a client that waits in vain for two nodes in turn, twice, after all
        that its line has to carry."""
        if self.settle_ms != SETTLE_MS:
            return self.settle_ms
        trip_us = self.client_trip_us + 2 * (self.turn_us + self.client_jitter_us)
        storing = 2 * (self.records + 20) * trip_us // 1_000
        asking = 4 * self.request_timeout_ms + 4 * self.line_ms(self.records)
        reading = self._reading_us(trip_us) // 1_000
        slow = (20 * self.election_timeout_ms, 20 * self.retry_backoff_ms, storing, reading, asking)
        return max(SETTLE_MS, *slow)

    def _reading_us(self, trip_us: Micros) -> Micros:
        """How long it takes to read all twice, fetch by fetch, each after a fetch of every other
        partition, which waits for new records."""
        largest = self.records * (self.record_bytes + AROUND_BYTES)
        fetches = min(self.records, largest // max(1, self.fetch_bytes)) + 20
        others = self.partitions - 1
        waits_us = FETCH_WAIT_US * others // self.partitions
        return 2 * fetches * (self.partitions * trip_us + waits_us)

    def with_(self, **changes: Any) -> RunConfig:
        """The same with some settings changed. Raises `ConfigError`."""
        known = {name: type(getattr(self, name)) for name in SETTINGS}
        for name, value in changes.items():
            if name not in known:
                raise ConfigError(f"no such setting: {no_such(name, known)}")
            check_kind(name, value, known[name])
        return replace(self, **changes)

    def told(self) -> str:
        """All settings that were set or are not at their default, as TOML for `from_toml`."""
        default = RunConfig()
        lines = [
            f"{name} = {as_toml(value)}"
            for name, value in self.values().items()
            if name in self.said or value != getattr(default, name)
        ]
        return "\n".join(lines)


SETTINGS = tuple(item.name for item in fields(RunConfig) if item.name != "said")
"""The names of all settings, in their order."""
