"""Read-only views of a node: `Node.inspect()` returns a `NodeView`.

A view is cheap and only reads. It keeps no state: each answer is of the moment of the call, also in
the middle of a turn. So the simulator, the description of a cluster and its list of events need no
access to the driver or to a machine. To be called when something changes, register a `Watcher`
(`Node.watch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ottla.broker.controller.controller import CONTROLLER_GROUP, Controller
from ottla.broker.driver.runner import Runner
from ottla.broker.heartbeats.heartbeats import Heartbeats
from ottla.broker.images import PartitionImage, TopicImage
from ottla.broker.partition.partition import Partition
from ottla.broker.turn.replica import Replica
from ottla.log.types import EpochStart, Offset, Unpacked
from ottla.raft.ready import SoftState
from ottla.raft.roles import Role
from ottla.raft.types import GroupId, LogIndex, Micros, NodeId, Term


class PartitionView:
    """The state of a replica's partition: offsets, producers, whether it serves."""

    __slots__ = ("_partition",)

    def __init__(self, partition: Partition):
        self._partition = partition

    @property
    def serves(self) -> bool:
        """Whether it leads and has applied everything that earlier terms replicated."""
        return self._partition.leadership.synced

    @property
    def term(self) -> Term:
        """The term of the leader that the partition knows: the leader epoch."""
        return self._partition.leadership.term

    @property
    def applied(self) -> LogIndex:
        """Index of the last entry applied."""
        return self._partition.applied

    @property
    def last_index(self) -> LogIndex:
        """Index of the last entry appended."""
        return self._partition.last_index

    @property
    def log_start_offset(self) -> Offset:
        """The first offset that can be read."""
        return self._partition.state.log_start_offset

    @property
    def epoch_starts(self) -> list[EpochStart]:
        """Its leader epoch history, oldest first."""
        return self._partition.state.index.epoch_starts()

    @property
    def high_watermark(self) -> Offset:
        """The high watermark: readers see the offsets below it."""
        return self._partition.state.high_watermark

    @property
    def log_end_offset(self) -> Offset:
        """The log end offset: the offset of the next record."""
        return self._partition.state.index.next_offset

    def in_sync(self, now: Micros) -> tuple[NodeId, ...]:
        """The replicas that are in sync, as its leader knows it."""
        return self._partition.state.in_sync.in_sync(now)

    @property
    def producers(self) -> int:
        """How many producers it knows."""
        return len(self._partition.table)

    @property
    def producers_applied(self) -> LogIndex:
        """The log index up to which its producer table is known. It may be larger than `applied`
        after a snapshot."""
        return self._partition.table.applied_index

    def producers_seen(self) -> list[Unpacked]:
        """Everything by which duplicates are recognized, as plain values. Equal values mean equal
        producer tables."""
        return self._partition.table.seen()

    def describe_producers(self) -> dict[int | str, dict[str, Unpacked]]:
        """Each producer by its id: epoch, finished batches, batches in flight."""
        described: dict[int | str, dict[str, Unpacked]] = self._partition.table.describe()[
            "producers"
        ]
        return described

    def producers_digest(self) -> int:
        """A digest of `producers_seen`."""
        return self._partition.table.digest()

    def terms_in_flight(self) -> Iterator[Term]:
        """The terms of all batches in flight."""
        return (each.term for each in self._partition.table.in_flight())


class DecisionsView:
    """The state of a replica of the controller group."""

    __slots__ = ("_controller",)

    def __init__(self, controller: Controller):
        self._controller = controller

    @property
    def applied(self) -> LogIndex:
        """Index of the last entry applied."""
        return self._controller.applied

    def encode(self) -> bytes:
        """All decisions as bytes: equal bytes mean equal decisions."""
        return self._controller.catalog.encode()


class ReplicaView:
    """One replica of a Raft group: the state of its core and of its machine."""

    __slots__ = ("_replica",)

    def __init__(self, replica: Replica):
        self._replica = replica

    @property
    def group(self) -> GroupId:
        """Its Raft group."""
        return self._replica.group

    @property
    def role(self) -> Role:
        """Its role now. In the middle of a turn it may be newer than `soft`."""
        return self._replica.core.role

    @property
    def term(self) -> Term:
        """Its term now."""
        return self._replica.core.term

    @property
    def leader(self) -> NodeId:
        """The leader that it knows now: itself if it leads, 0 if it knows none."""
        return self._replica.core.leader

    @property
    def soft(self) -> SoftState:
        """Role, term and leader as of the last turn."""
        return self._replica.soft

    @property
    def leads(self) -> bool:
        """Whether it leads, as of the last turn."""
        return self._replica.leading

    @property
    def successor(self) -> NodeId:
        """The node to which it transfers its leadership; 0 if there is no transfer."""
        return self._replica.core.transferring_to

    @property
    def proves(self) -> bool:
        """Whether a barrier is under way: answers wait for proof that it leads."""
        tickets = self._replica.machine.leadership.barriers.open_tickets()
        return next(tickets, None) is not None

    @property
    def voters(self) -> Sequence[NodeId]:
        """The members of the group."""
        return self._replica.core.voters

    @property
    def term_start(self) -> LogIndex:
        """If it leads: the index of the first entry of its term; else 0."""
        return self._replica.core.term_start or 0

    @property
    def last_index(self) -> LogIndex:
        """Index of the last entry of its log."""
        return self._replica.core.last_index

    @property
    def commit(self) -> LogIndex:
        """Index of the last entry that it knows to be committed."""
        return self._replica.core.commit

    @property
    def applied(self) -> LogIndex:
        """Index of the last entry that its machine has applied."""
        return self._replica.applied

    @property
    def partition(self) -> PartitionView | None:
        """Its partition; None for the controller group."""
        machine = self._replica.machine
        return PartitionView(machine) if isinstance(machine, Partition) else None

    def of_partition(self) -> PartitionView:
        """As `partition`; asserts that it is not of the controller group."""
        partition = self.partition
        assert partition is not None, f"group {self.group} is the controller's"
        return partition

    @property
    def decisions(self) -> DecisionsView | None:
        """The controller's decisions; None for the group of a partition."""
        machine = self._replica.machine
        return DecisionsView(machine) if isinstance(machine, Controller) else None


class NodeView:
    """One node: its replicas, the controller's decisions that it knows, the nodes that it hears."""

    __slots__ = ("_beats", "_controller", "_now", "_runner")

    def __init__(
        self,
        runner: Runner,
        controller: Controller,
        beats: Heartbeats,
        now: Callable[[], Micros],
    ):
        self._runner = runner
        self._controller = controller
        self._beats = beats
        self._now = now

    @property
    def paused(self) -> bool:
        """Whether it is paused, like a stopped process."""
        return self._runner.paused

    def replicas(self) -> Iterator[ReplicaView]:
        """All its replicas, that of the controller group first."""
        return (ReplicaView(each.replica) for each in self._runner.hosted_replicas.values())

    def replica(self, group: GroupId) -> ReplicaView | None:
        """Its replica of a group; None if it has none."""
        hosted = self._runner.hosted_replicas.get(group)
        return None if hosted is None else ReplicaView(hosted.replica)

    def controller(self) -> ReplicaView | None:
        """Its replica of the controller group; None before it has joined."""
        return self.replica(CONTROLLER_GROUP)

    @property
    def controls(self) -> bool:
        """Whether it leads the controller group and has applied what earlier terms decided."""
        return self._controller.leadership.synced

    @property
    def decisions_applied(self) -> LogIndex:
        """The index up to which it has applied the controller's log."""
        return self._controller.applied

    def placed(self, group: GroupId) -> tuple[TopicImage, PartitionImage] | None:
        """The topic and partition of a group, as far as this node has applied the controller's log;
        None when no topic has it."""
        return self._controller.partition_of(group)

    def hears(self, peer: NodeId, within: Micros) -> bool:
        """Whether it heard something new of `peer` in the last `within` microseconds."""
        return self._beats.alive(peer, self._now(), within)
