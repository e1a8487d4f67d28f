"""What a run is: one flat, frozen value, read from TOML or drawn by the swarm.

Spans end in `_us` or `_ms`, sizes in `_bytes`, rates per million in `_ppm`. Everything is a whole
number, a word or a truth, so that a configuration has one spelling and one `name` (a hash), and a
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
from ottla.broker.errors import ConfigError
from ottla.broker.node.replica_factory import LogLimits
from ottla.idempotency.errors import UnknownProfileError
from ottla.idempotency.profiles import profile_named
from ottla.raft.types import Micros, NodeId
from ottla.sim.mutants.mutant import Mutant
from ottla.sim.settings.link_times import CLIENTS, groups_of, majority_us, near_us, round_trips
from ottla.sim.settings.ranges import AROUND_BYTES, FATES, MILLION, check_range
from ottla.sim.settings.spans import check_elections, check_syncs
from ottla.sim.settings.spelling import as_written

MUTANT_IDS = tuple(each.value for each in Mutant)
SETTLE_MS = 60_000
FETCH_WAIT_US: Micros = 500_000
"""How long a consumer's fetch waits for something new (fetch.max.wait.ms)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Settings of one run. Raises `ConfigError` on nonsense, naming the setting."""

    # The cluster
    nodes: int = 3
    """Numbered from 1; each has a replica of the controller's log."""
    replicas: int = 3
    """Of each partition; never more than there are nodes."""
    partitions: int = 1
    """Of the one topic that there is."""
    profile: str = "reference-strict"
    """Not the broker's own default: *reference* takes an unknown producer at any sequence, which
    loses records in a rare race (decision 0012), and a sweep finds it."""
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
    """Of entries in one AppendEntries; one entry always fits."""
    max_append_entries: int = 500
    """Entries in one AppendEntries."""
    max_inflight_bytes: int = 16 << 20
    """Of entries that a follower was sent and has not acknowledged; one entry always fits."""
    snapshot_chunk_bytes: int = 256 << 10
    """Of a snapshot in one InstallSnapshot."""
    catalog_entries: int = 1_000
    """Applied entries of the controller's log between two snapshots of the catalog."""
    connection_requests: int = 64
    """Requests of one connection under way on a node; 1 is Kafka's way."""

    # What it runs on
    rtt_us: int = 400
    """Between two nodes, there and back, at best."""
    links: str = ""
    """Round trips of single links in microseconds, such as "1-2:20000 c-3:400"
    (`sim/settings/link_times.py`)."""
    jitter_us: int = 200
    """Mean of what comes on top, exponentially, each way."""
    client_rtt_us: int = 400
    """Between a client and a node, there and back, at best."""
    client_jitter_us: int = 200
    """Mean of what comes on top, exponentially, each way."""
    client_bytes_per_ms: int = 0
    """What one connection carries of a client's requests; 0 for as much as there is."""
    sync_us: int = 300
    """What a sync of a disk takes at least."""
    sync_jitter_us: int = 200
    """Mean of what comes on top, exponentially."""
    turn_us: int = 20
    """What a node needs until it takes its next turn: what arrives meanwhile shares it."""

    # What clients do
    load_ms: int = 20_000
    """Over how long records are handed out; faults end then."""
    records: int = 360
    """Of all producers together."""
    arrivals: str = "bursts"
    """How records are handed out: in bursts and pauses, at even distances, or at random (Poisson);
    the same number over the same time."""
    producers: int = 2
    """Each has a client of its own."""
    consumers: int = 1
    """Each reads all partitions from the start."""
    client_model: str = "both"
    """java, librdkafka, or both in turn."""
    idempotent: bool = True
    """Without, a record that is sent again may be stored again, and nobody counts sequences."""
    acks: int = -1
    """What producers ask for: -1 (all), 1 or 0."""
    in_flight: int = 5
    """Produce requests of one producer under way to one node."""
    batch_records: int = 4
    """At most so many in a batch."""
    record_bytes: int = 16
    """Of a record's value."""
    fetch_bytes: int = 1 << 20
    """About so much is given to a consumer at once; at least one batch."""
    request_timeout_ms: int = 1_500
    """For which a client waits for an answer before it gives the connection up."""
    delivery_timeout_ms: int = 30_000
    """After which a producer gives a batch up."""
    retry_backoff_ms: int = 50
    """Between two tries of a client."""
    metadata_max_age_ms: int = 5_000
    """After which clients ask who leads though nothing told them to."""
    leader_epochs: bool = True
    """Clients know how old metadata is (KIP-320); without, they believe the last they hear."""
    first_sequence: int = 0
    """Where the first epoch of each partition begins. Not 0: for profiles that let it (0012)."""

    # What goes wrong
    loss_ppm: int = 0
    """Messages between nodes that never arrive."""
    twice_ppm: int = 0
    """Messages between nodes that arrive twice."""
    late_ppm: int = 0
    """Messages between nodes that take thirty times as long, and are overtaken."""
    reset_ppm: int = 0
    """Requests or answers of clients with which the connection breaks."""
    restart_ppm: int = 0
    """Bursts after which a producer is replaced by one with a new id."""
    slow_sync_ppm: int = 0
    """Syncs that take a hundred times as long."""
    fault_every_ms: int = 0
    """Mean time between two programs of the nemesis; 0 for none."""
    faults: str = ""
    """Which programs of the nemesis take part, separated by spaces; empty for all."""

    mutants: str = ""
    """Safety mechanisms that are switched off (`sim/mutants/catalogue.py`), by id."""

    # How it ends
    leader_left_out: bool = False
    """The leader of partition 0 is not among the nodes that are healed first."""
    probes: bool = False
    """One more record is asked for, until it is stored, in each partition that the healed nodes
    must serve."""
    settle_ms: int = SETTLE_MS
    """How long everything may take to come to rest once nothing goes wrong any more; at its default
    longer where elections or clients are slow (`bound_ms`)."""

    delays: str = "alike"
    """*own*: each way of each link draws a mean and a shape of its own (`sim/world/network.py`)."""

    fault_kinds: int = 0
    """How many programs of the nemesis take part, where none is named; 0 for about half."""

    said: frozenset[str] = field(default=frozenset(), compare=False)
    """No setting: the names of those that a person set, be it to the default. The swarm leaves them
    alone; what it returns has none."""

    def __post_init__(self) -> None:
        for name in SETTINGS:
            check_range(name, getattr(self, name))
        if self.replicas > self.nodes:
            raise ConfigError(f"replicas is {self.replicas}, but there are {self.nodes} nodes")
        if self.min_insync > self.replicas:
            raise ConfigError(
                f"min_insync is {self.min_insync}, but replicas is {self.replicas}: nothing "
                "would ever be acknowledged with acks=all"
            )
        try:
            profile_named(self.profile)
        except UnknownProfileError as error:
            raise ConfigError(f"profile: {error}") from None
        self.cluster_config()
        self._check_sequences()
        if self.flush != FlushPolicy.OFF.value:
            check_syncs(self.sync_us, self.sync_jitter_us, self.sync_stall_ms)
        fates = sum(getattr(self, name) for name in FATES)
        if fates > MILLION:
            raise ConfigError(
                f"{' + '.join(FATES)} is {fates}; a message has one fate of a million"
            )
        round_trips(self.links, self.nodes)
        for each in self.mutants.split():
            if each not in MUTANT_IDS:
                raise ConfigError(f"mutants: there is no {each}; one of {' '.join(MUTANT_IDS)}")

    @property
    def name(self) -> str:
        """Sixteen letters that stand for these settings."""
        told = msgpack.packb(sorted(self.values().items()))
        return blake2b(told, digest_size=8).hexdigest()

    def values(self) -> dict[str, int | str | bool]:
        """Every setting by its name."""
        told = asdict(self)
        del told["said"]
        return told

    def cluster_config(self) -> ClusterConfig:
        """What the nodes are told."""
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
    def client_trip_us(self) -> Micros:
        """Round trip between clients and the node that is farthest from them, at best: it may lead,
        and then nobody else has what they ask for."""
        trips = round_trips(self.links, self.nodes)
        nodes = range(1, self.nodes + 1)
        return max(trips.get((CLIENTS, each), self.client_rtt_us) for each in nodes)

    @property
    def patience_ms(self) -> int:
        """What a client has to wait for an answer at the least, so that most come in time: four
        times what a request takes on average, there and among the nodes, behind all that may be in
        flight with it."""
        trip = self.client_trip_us + self.farthest[0]
        trip += 2 * (self.client_jitter_us + self.jitter_us + self.turn_us)
        line_ms = self.line_ms(self.in_flight * self.batch_records)
        return 4 * (trip + self.syncing_us) // 1_000 + 4 * line_ms

    def line_ms(self, records: int) -> int:
        """How long a client's line carries so many records."""
        rate = self.client_bytes_per_ms
        return records * (self.record_bytes + AROUND_BYTES) // rate if rate else 0

    @property
    def syncing_us(self) -> int:
        """How long what waits for a sync waits, at least."""
        if self.flush == FlushPolicy.OFF.value:
            return 0
        waits = self.flush == FlushPolicy.INTERVAL.value
        return self.sync_us + self.sync_jitter_us + waits * 1_000 * self.flush_interval_ms

    @property
    def farthest(self) -> tuple[Micros, tuple[NodeId, ...]]:
        """The group of nodes whose nearest majority is farthest apart, and how far, there and back,
        at best; 0 where no group has a second node."""
        trips = round_trips(self.links, self.nodes)
        partitions = self.partitions if trips else 1  # without links all are equally far apart
        groups = groups_of(self.nodes, partitions, self.replicas)
        return max((majority_us(each, trips, self.rtt_us), each) for each in groups)

    def _check_sequences(self) -> None:
        """Whether the profile lets an unknown producer that was not forgotten begin anywhere but at
        0. Raises `ConfigError`."""
        if self.first_sequence and not profile_named(self.profile).begins_anywhere:
            raise ConfigError(
                f"first_sequence is {self.first_sequence}, but with {self.profile} producers "
                "begin at 0; name another profile, such as reference"
            )

    def check_lag(self) -> None:
        """Whether a follower can be in sync for long: one that has nothing to acknowledge is heard
        of by beats. Raises `ConfigError`."""
        least = 2 * self.heartbeat_ms + (self.farthest[0] + self.syncing_us) // 1_000
        if self.min_insync > 1 and self.replica_lag_ms < least:
            raise ConfigError(
                f"replica_lag_ms is {self.replica_lag_ms}, but a follower is heard of every "
                f"{self.heartbeat_ms} ms: min_insync ({self.min_insync}) needs at least {least}"
            )

    def near(self, nodes: Collection[NodeId], needed: int) -> bool:
        """Whether one of these nodes is so near to `needed` of them, itself included, that it could
        be elected by them and stay (`check_elections`)."""
        trip_us = near_us(nodes, needed, round_trips(self.links, self.nodes), self.rtt_us)
        timeout_us = 1_000 * self.election_timeout_ms
        return not trip_us or trip_us < min(timeout_us, 2 * (timeout_us - self.syncing_us))

    def check_elections(self) -> None:
        """Whether a leader could be elected and stay. Raises `ConfigError`."""
        check_elections(self.election_timeout_ms, self.syncing_us, *self.farthest)

    @property
    def bound_ms(self) -> int:
        """How long the end of a run may take: `settle_ms`, and at its default at least what twenty
        elections or retries need, or two round trips for each record; what consumers need who are
        given little at a time; or a client that waits in vain for two nodes in turn, twice, behind
        all that its line has to carry."""
        if self.settle_ms != SETTLE_MS:
            return self.settle_ms
        trip_us = self.client_trip_us + 2 * (self.turn_us + self.client_jitter_us)
        storing = 2 * (self.records + 20) * trip_us // 1_000
        asking = 4 * self.request_timeout_ms + 4 * self.line_ms(self.records)
        reading = self._reading_us(trip_us) // 1_000
        slow = (20 * self.election_timeout_ms, 20 * self.retry_backoff_ms, storing, reading, asking)
        return max(SETTLE_MS, *slow)

    def _reading_us(self, trip_us: Micros) -> Micros:
        """What it takes to read all twice, fetch by fetch, each behind one of every other
        partition, which waits a while for something new."""
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
            if type(value) is not known[name]:
                raise ConfigError(
                    f"{name} is {as_written(value)}; {_TYPES[known[name]]} is expected"
                )
        return replace(self, **changes)

    def told(self) -> str:
        """Every setting that was said or is not at its default, as TOML for `from_toml`."""
        default = RunConfig()
        lines = [
            f"{name} = {_toml(value)}"
            for name, value in self.values().items()
            if name in self.said or value != getattr(default, name)
        ]
        return "\n".join(lines)


SETTINGS = tuple(item.name for item in fields(RunConfig) if item.name != "said")
"""The names of all settings, in their order."""


_TYPES = {int: "a whole number", bool: "true or false", str: "a word"}


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
