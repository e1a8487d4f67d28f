"""Makes replicas: fresh ones with their first entry, or those that a store remembers.

A fresh group begins everywhere with the same entry, the CONFIGURATION that names its voters, and
its preferred leader asks for votes at once, so that a new topic can be written to within
milliseconds. A remembered one reads its log once, to know terms, sizes and offsets again; what of
it is committed it learns from the leader.

A log may be long, so it is read in steps: `begin` makes an `Opening`, which learns some entries at
a time, and `finish` makes the replica of it. Nobody else writes to the group in between.
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
from ottla.broker.topics.configs import LOG_APPEND_TIME, integer, text
from ottla.broker.turn.looks import Looks
from ottla.broker.turn.machine import Machine, find_log_watcher
from ottla.broker.turn.replica import Replica
from ottla.idempotency.profiles import profile_named
from ottla.log.inspection import RecordRules
from ottla.log.store import LogStore, StoredGroup, Write
from ottla.raft.config import JitterSource, RaftConfig
from ottla.raft.core import RaftCore
from ottla.raft.raft_log import RaftLog, bootstrap
from ottla.raft.types import Entry, GroupId, HardState, Micros, NodeId

Writing: TypeAlias = Callable[[Sequence[Write]], None]
"""`Runner.write`."""
SCAN_ENTRIES = 1000
"""Entries that an `Opening` learns in one step: up to 2 us each in memory, 10 us from a disk."""


class Opening:
    """A replica that is about to be: what its core and its machine have learned of the log."""

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
        """To be appended to the store before `finish`: the first entries of a log that is new."""
        self._unread = iter(unread)

    def learn(self) -> bool:
        """Learn some more. True: that was all of the log. Raises `StoreError`."""
        entries = list(islice(self._unread, SCAN_ENTRIES))
        if entries:
            find_log_watcher(self.machine).appended(entries)
            self.remembered.log.learn(entries)
        return len(entries) < SCAN_ENTRIES


@dataclass(frozen=True, slots=True)
class Remembered:
    """Where a replica begins."""

    log: RaftLog
    hard_state: HardState
    unapplied: Sequence[Entry] = ()
    """Entries at the end of the log that are at hand."""
    fresh: bool = False
    """The store knows nothing of the group."""


class ReplicaFactory:
    """Makes the replicas of one node; see the module's text."""

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
    ):
        self._node = node
        self._config = config
        self._store = store
        self._jitter = jitter
        self._counters = counters
        self._make_core = make_core
        self._make_partition = make_partition
        self._profile = profile_named(config.profile)
        self.looks = Looks()
        """What all partitions of this node work off."""
        self._stored: dict[GroupId, StoredGroup] = {each.group: each for each in store.groups()}

    def make_controller(
        self, cluster_id: str, nodes: Sequence[NodeId], unheard: Callable[[], Sequence[NodeId]]
    ) -> Controller:
        """The machine of the controller group; `unheard` says which nodes were not heard lately."""
        return Controller(cluster_id, nodes, self._config, unheard=unheard)

    def controller(
        self, machine: Machine, nodes: Sequence[NodeId], now: Micros, write: Writing
    ) -> Replica:
        """This node's replica of the controller group, whose log is short."""
        return self.open(self._begin(CONTROLLER_GROUP, nodes, machine, now), now, write)

    def open(self, opening: Opening, now: Micros, write: Writing) -> Replica:
        """The replica in one step, whatever it takes."""
        if opening.writes:
            write(opening.writes)
        while not opening.learn():
            pass
        return self.finish(opening, now)

    def begin(
        self, topic: TopicImage, group: GroupId, replicas: Sequence[NodeId], now: Micros
    ) -> Opening:
        """This node's replica of one partition, in steps: append `writes`, `learn` until that is
        through, then `finish`."""
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
            records=RecordRules(
                text("message.timestamp.type", topic.configs, config) == LOG_APPEND_TIME,
                integer("message.timestamp.before.max.ms", topic.configs, config),
                integer("message.timestamp.after.max.ms", topic.configs, config),
            ),
            looks=self.looks,
        )
        in_sync = InSync(config.replica_lag_ms * 1000, replicas, self._node)
        machine = self._make_partition(settings, in_sync)
        return self._begin(group, replicas, machine, now)

    def leftovers(self, deleted: Callable[[GroupId], bool]) -> list[Write]:
        """Writes that forget what the store still remembers of groups deleted meanwhile."""
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
        """The replica, once all of its log is learned."""
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
        config = self._config
        return RaftConfig(
            group=group,
            node=self._node,
            election_timeout=config.election_timeout_ms * 1000,
            retransmit=min(2 * config.heartbeat_ms, config.election_timeout_ms // 2) * 1000,
        )


def _without_log(stored: StoredGroup) -> bool:
    """Whether the first entry of a log was torn before it was ever synced: recovery cut it off, and
    without it nobody knows who the voters are. Nothing was promised, but for a vote maybe."""
    return stored.snapshot is None and stored.last_index == 0
