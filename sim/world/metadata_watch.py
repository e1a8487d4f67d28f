"""`MetadataWatch`: what nodes say of partitions: where logs and epochs begin, and who leads.

A replica knows its log's start and epoch history by its own log. It knows the leader of a partition
by messages. Each value gets a row when it changes, and once more at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

from ottla.broker.node.inspection import ReplicaView
from ottla.broker.wire.answers import MetadataAnswer
from ottla.log.types import Offset
from ottla.raft.types import GroupId, NodeId, Term
from ottla.sim.history.history import History
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.life import Life

FINAL = "final"


class MetadataWatch:
    """See the module's docstring. `partitions`: the number of a partition by group."""

    def __init__(self, history: History, partitions: Mapping[GroupId, int]):
        self._history = history
        self._partitions = partitions
        self._named: dict[tuple[NodeId, int, int], tuple[NodeId, Term]] = {}
        """By node, incarnation and partition: the leader and epoch that the node named last."""

    def add_log_start(self, life: Life, replica: ReplicaView, code: str | None = None) -> Offset:
        """A row for a replica's log start. Returns the log start."""
        partition = replica.of_partition()
        self._history.add(
            "logstart",
            node=life.node_id,
            inc=life.inc,
            partition=self._partitions[replica.group],
            log_index=partition.applied,
            off=partition.log_start_offset,
            hw=partition.high_watermark,
            code=code,
        )
        return partition.log_start_offset

    def add_epochs(self, life: Life, replica: ReplicaView, code: str | None = None) -> None:
        """A row for each epoch that a replica knows: it uses them to say where an epoch ended."""
        partition = replica.of_partition()
        for epoch, start in partition.epoch_starts:
            self._history.add(
                "epoch",
                node=life.node_id,
                inc=life.inc,
                partition=self._partitions[replica.group],
                term=epoch,
                off=start,
                log_index=partition.applied,
                code=code,
            )

    def add_named(self, life: Life, answer: MetadataAnswer) -> None:
        """Rows for the leaders that a client is told, if they changed."""
        for topic in [each for each in answer.topics if each.name == TOPIC]:
            for part in topic.partitions:
                place = life.node_id, life.inc, part.partition_index
                claim = part.leader_id, part.leader_epoch
                if part.leader_id > 0 and self._named.get(place) != claim:
                    self._named[place] = claim
                    self._add_leader(life, part.partition_index, *claim)

    def _add_leader(
        self, life: Life, partition: int, leader: NodeId, epoch: Term, code: str | None = None
    ) -> None:
        self._history.add(
            "named",
            node=life.node_id,
            inc=life.inc,
            partition=partition,
            cand=leader,
            term=epoch,
            code=code,
        )

    def add_final(self, life: Life, partitions: Collection[int]) -> None:
        """All these rows once more, for a node that is up at the end."""
        topic = life.node.topics().get(TOPIC)
        for image in topic.partitions if topic is not None else ():
            replica = life.view.replica(image.group)
            if replica is not None and image.partition in partitions:
                self.add_log_start(life, replica, FINAL)
                # An index that contradicts itself knows no epoch: sim-I47 reports that, and other
                # invariants its consequences (mutant M12 in sim-S54).
                with suppress(AssertionError):
                    self.add_epochs(life, replica, FINAL)
            found = life.node.leader(image.group)
            self._add_leader(life, image.partition, found.leader, found.epoch, FINAL)
