"""Makes replicas: new ones with their first entry, or those that the store has.

On every node a new group begins with the same entry, the CONFIGURATION that names its voters. Its
preferred leader starts an election at once, so that a new topic can be written within milliseconds.
A stored replica reads its log once, to know terms, sizes and offsets again; the leader tells it how
much of the log is committed.

A log may be long, so it is read in steps: `begin` makes an `Opening`, whose `learn` reads some
entries at a time, and `finish` makes the replica. Nobody else may write to the group in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from ottla.broker.config import ClusterConfig
from ottla.broker.controller.controller import CONTROLLER_GROUP, Controller
from ottla.broker.counters import Counters
from ottla.broker.images import TopicImage
from ottla.broker.partition.in_sync import InSync
from ottla.broker.partition.partition import Partition
from ottla.broker.partition.state import PartitionSettings
from ottla.broker.profiles.named import profile_named
from ottla.broker.topics.configs import LOG_APPEND_TIME, integer, text
from ottla.broker.turn.looks import Looks
from ottla.broker.turn.machine import Machine, find_log_watcher
from ottla.broker.turn.replica import Replica
from ottla.log.inspection import UNLIMITED, RecordRules
from ottla.log.store import LogStore, StoredGroup, Write
from ottla.raft.config import JitterSource, RaftConfig
from ottla.raft.core import RaftCore
from ottla.raft.raft_log import RaftLog, bootstrap
from ottla.raft.types import Entry, GroupId, HardState, Micros, NodeId

Writing: TypeAlias = Callable[[Sequence[Write]], None]
"""`Runner.write`."""
SCAN_ENTRIES = 1000
"""Entries that an `Opening` reads in one step: up to 2 us each from memory, 10 us from a disk."""


class Opening:
    """A replica that is being opened: its machine and its Raft log, as far as they are read."""

    def __init__(
        self,
        group: GroupId,
        voters: Sequence[NodeId],
        machine: Machine,
        remembered: Remembered,
        unread: Iterable[Entry],
    ):
        self.group = group
        self.voters = voters
        self.machine = machine
        self.remembered = remembered
        self.writes: Sequence[Write] = ()
        """Writes that the caller must append before `finish`: the first entries of a new log."""
        self._unread = iter(unread)

    def learn(self) -> bool:
        """Read the next entries. True: the whole log is read. Raises `StoreError`."""
        entries = list(islice(self._unread, SCAN_ENTRIES))
        if entries:
            find_log_watcher(self.machine).appended(entries)
            self.remembered.log.learn(entries)
        return len(entries) < SCAN_ENTRIES


@dataclass(frozen=True, slots=True)
class Remembered:
    """The state with which a replica begins."""

    log: RaftLog
    hard_state: HardState
    unapplied: Sequence[Entry] = ()
    """The last entries of the log, if they are in memory."""
    fresh: bool = False
    """Whether the store does not have the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """How much of a log goes at once. No setting of a cluster: the simulator makes them small, so
    that short runs split what is large elsewhere."""

    append_bytes: int = 1 << 20
    """`RaftConfig.max_append_bytes`."""
    append_entries: int = 500
    """`RaftConfig.max_append_entries`."""
    inflight_bytes: int = 16 << 20
    """`RaftConfig.max_inflight_bytes`."""
    chunk_bytes: int = 256 << 10
    """`RaftConfig.snapshot_chunk_bytes`."""
    controller_entries: int = 1_000
    """Applied entries of the controller's log between two snapshots of the catalog."""


_PLAIN_LIMITS = LogLimits()


class ReplicaFactory:
    """Makes the replicas of one node; see the module's docstring."""

    replica_type: type[Replica] = Replica

    def __init__(
        self,
        node: NodeId,
        config: ClusterConfig,
        *,
        store: LogStore,
        counters: Counters,
        jitter: JitterSource,
        make_core: Callable[..., RaftCore] = RaftCore,
        make_partition: Callable[[PartitionSettings, InSync], Partition] = Partition,
        limits: LogLimits = _PLAIN_LIMITS,
    ):
        self.limits = limits
        self._node = node
        self._config = config
        self._store = store
        self._jitter = jitter
        self._counters = counters
        self._make_core = make_core
        self._make_partition = make_partition
        self._profile = profile_named(config.profile)
        self.looks = Looks()
        """The allowance for checking batches that all partitions of this node share."""
        self._stored: dict[GroupId, StoredGroup] = {each.group: each for each in store.groups()}

    def make_controller(
        self, cluster_id: str, nodes: Sequence[NodeId], unheard: Callable[[], Sequence[NodeId]]
    ) -> Controller:
        """The machine of the controller group. `unheard` returns the nodes not heard lately."""
        every = self.limits.controller_entries
        return Controller(cluster_id, nodes, self._config, unheard=unheard, compact_every=every)

    def controller(
        self, machine: Machine, nodes: Sequence[NodeId], now: Micros, write: Writing
    ) -> Replica:
        """This node's replica of the controller group, in one step: its log is short."""
        return self.open(self._begin(CONTROLLER_GROUP, nodes, machine, now), now, write)

    def open(self, opening: Opening, now: Micros, write: Writing) -> Replica:
        """Open a replica in one step, however long it takes."""
        if opening.writes:
            write(opening.writes)
        while not opening.learn():
            pass
        return self.finish(opening, now)

    def begin(
        self, topic: TopicImage, group: GroupId, replicas: Sequence[NodeId], now: Micros
    ) -> Opening:
        """Begin to open this node's replica of one partition. Append `Opening.writes`, call `learn`
        until it returns True, then `finish`."""
        config = self._config
        settings = PartitionSettings(
            group=group,
            node=self._node,
            profile=self._profile,
            max_message_bytes=integer("max.message.bytes", topic.configs, config),
            segment_bytes=integer("segment.bytes", topic.configs, config),
            min_insync_replicas=integer("min.insync.replicas", topic.configs, config),
            leader_queue_bytes=config.leader_queue_bytes,
            max_producers=config.max_producers,
            producer_expiry=config.producer_expiry_ms * 1000,
            counters=self._counters,
            records=self._record_rules(topic),
            looks=self.looks,
        )
        in_sync = InSync(config.replica_lag_ms * 1000, replicas, self._node)
        machine = self._make_partition(settings, in_sync)
        return self._begin(group, replicas, machine, now)

    def _record_rules(self, topic: TopicImage) -> RecordRules:
        configs, config = topic.configs, self._config
        by_append = text("message.timestamp.type", configs, config) == LOG_APPEND_TIME
        if self._profile.times_unlimited:
            return RecordRules(by_append, before_max_ms=UNLIMITED, after_max_ms=UNLIMITED)
        return RecordRules(
            by_append,
            flag_refused=self._profile.append_time_flag_refused,
            before_max_ms=integer("message.timestamp.before.max.ms", configs, config),
            after_max_ms=integer("message.timestamp.after.max.ms", configs, config),
        )

    def leftovers(self, deleted: Callable[[GroupId], bool]) -> list[Write]:
        """Writes that delete groups which the store still has, but which were deleted meanwhile."""
        gone = [each for each in self._stored if deleted(each)]
        for group in gone:
            del self._stored[group]
        return [Write(group, delete=True) for group in gone]

    def _begin(
        self, group: GroupId, voters: Sequence[NodeId], machine: Machine, now: Micros
    ) -> Opening:
        stored = self._stored.pop(group, None)
        if stored is None or _without_log(stored):
            log, entries = bootstrap(voters)
            find_log_watcher(machine).appended(entries)
            hard_state = HardState() if stored is None else stored.hard_state
            begins = Remembered(log, hard_state, entries, fresh=stored is None)
            opening = Opening(group, voters, machine, begins, ())
            opening.writes = [Write(group, first=entries[0].index, entries=entries)]
            return opening
        if stored.snapshot is not None:
            snapshot = self._store.snapshot(group)
            assert snapshot is not None, f"group {group} lost its snapshot"
            machine.restore(snapshot, now)
        goes_on = Remembered(RaftLog.restore(stored.snapshot, ()), stored.hard_state)
        return Opening(group, voters, machine, goes_on, self._store.scan(group))

    def finish(self, opening: Opening, now: Micros) -> Replica:
        """The replica, once its whole log is read."""
        voters, begins = opening.voters, opening.remembered
        core = self._make_core(
            self._raft_config(opening.group),
            hard_state=begins.hard_state,
            log=begins.log,
            jitter=self._jitter,
            now=now,
        )
        if (begins.fresh and voters[0] == self._node) or len(voters) == 1:
            core.campaign(now)
        return self.replica_type(opening.group, core, opening.machine, begins.unapplied)

    def _raft_config(self, group: GroupId) -> RaftConfig:
        config, limits = self._config, self.limits
        return RaftConfig(
            group=group,
            node=self._node,
            election_timeout=config.election_timeout_ms * 1000,
            retransmit=min(2 * config.heartbeat_ms, config.election_timeout_ms // 2) * 1000,
            max_append_bytes=limits.append_bytes,
            max_append_entries=limits.append_entries,
            max_inflight_bytes=limits.inflight_bytes,
            snapshot_chunk_bytes=limits.chunk_bytes,
        )


def _without_log(stored: StoredGroup) -> bool:
    """Whether the log is empty: its first entry was never synced, and recovery cut it off. Without
    it the voters are not known. Nothing was promised to anybody, except maybe a vote."""
    return stored.snapshot is None and stored.last_index == 0
