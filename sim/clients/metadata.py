"""What a client believes about which node leads what, and how it finds out.

It asks one node at a time, chosen by `Asker.least_loaded`. It believes that node's answer, which
may be old (sim-N8), also about which nodes exist. Two rules keep it from going back in time: it
does not take over a leader of an older epoch than the one it knows; and if an answer names no
leader, it forgets the leader and asks again (Java's `Metadata.updateLatestMetadata`, librdkafka's
`rd_kafka_toppar_broker_update`).

It asks when told to (`refresh`), and when its knowledge is older than `metadata_max_age_ms`, but
never twice within the backoff. Clients older than KIP-320 know no epochs, and do go back in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Protocol

from ottla.broker.wire.answers import MetadataAnswer
from ottla.broker.wire.requests import MetadataRequest
from ottla.raft.types import Micros, NodeId, Term
from ottla.sim.clients.link import Link
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.kernel import Kernel
from ottla.sim.world.outcomes import Lost


class Leader(NamedTuple):
    """The leader of a partition; node 0: not known."""

    node: NodeId
    epoch: Term


UNKNOWN = Leader(0, -1)


class Asker(Protocol):
    """A client, as what it knows of the cluster sees it: it is told, and chooses whom to ask."""

    nodes: tuple[NodeId, ...]
    """The nodes that Metadata named last."""

    def least_loaded(self) -> Link | None:
        """A connection for any request, if there is one."""

    def named(self, nodes: tuple[NodeId, ...], /) -> None:
        """Metadata named these nodes."""

    def wake(self) -> None:
        """Work soon."""

    def alarm(self, at: Micros, /) -> None:
        """Work at `at`, or earlier."""


class View:
    """See the module's docstring."""

    __slots__ = (
        "_asking",
        "_backoff",
        "_client",
        "_epochs",
        "_kernel",
        "_max_age",
        "_not_before",
        "_stale_at",
        "_wanted",
        "leaders",
        "told_by",
    )

    def __init__(self, client: Asker, config: RunConfig, kernel: Kernel):
        self._epochs = config.leader_epochs
        self.leaders: dict[int, Leader] = {}
        """By partition; partitions that no answer has named yet are missing."""
        self.told_by: NodeId = 0
        """The node that answered last; 0: none yet."""
        self._client = client
        self._kernel = kernel
        self._backoff: Micros = config.retry_backoff_ms * 1000
        self._max_age: Micros = config.metadata_max_age_ms * 1000
        self._wanted = True
        self._asking = False
        self._not_before: Micros = 0
        self._stale_at: Micros = 0

    def leader(self, partition: int) -> NodeId:
        """The leader, as far as this client knows; 0: not known."""
        return self.leaders.get(partition, UNKNOWN).node

    def epoch(self, partition: int) -> Term:
        """The latest leader epoch that this client knows; -1: none."""
        return self.leaders.get(partition, UNKNOWN).epoch

    def refresh(self) -> None:
        """The metadata is in doubt: ask as soon as possible."""
        if not self._wanted:
            self._wanted = True
            self._client.wake()

    def hint(self, partition: int, node: NodeId, epoch: Term) -> None:
        """A node that does not lead names the leader (KIP-951): believed if its epoch is newer."""
        if node > 0 and epoch > self.epoch(partition):
            self.leaders[partition] = Leader(node, epoch)
            if node not in self._client.nodes:  # the hint comes with its address
                self._client.nodes += (node,)

    def forget_all_but(self, nodes: Sequence[NodeId]) -> None:
        """No other node can lead: a leader without an address counts as none (Java:
        `Cluster.leaderFor`, librdkafka: `rd_kafka_toppar_forget_leader`)."""
        for partition, (node, epoch) in self.leaders.items():
            if node not in nodes:
                self.leaders[partition] = Leader(0, epoch)

    def work(self) -> None:
        """Ask if there is a reason to and a connection for it."""
        if self._asking:
            return
        now = self._kernel.now
        if not self._wanted and now < self._stale_at:
            self._client.alarm(self._stale_at)
        elif now < self._not_before:
            self._client.alarm(self._not_before)
        else:
            link = self._client.least_loaded()
            if link is not None:
                self._ask(link)

    def _ask(self, link: Link) -> None:
        self._asking, self._wanted = True, False
        self._not_before = self._kernel.now + self._backoff
        answered = partial(self._answered, link.node)
        link.ask(MetadataRequest(), MetadataAnswer, answered, self._lost)

    def _lost(self, _: Lost) -> None:
        self._asking, self._wanted = False, True

    def _answered(self, asked: NodeId, answer: MetadataAnswer) -> None:
        # This also answers requests made meanwhile (Java: `Metadata.requestUpdate`).
        self._asking = self._wanted = False
        self.told_by = asked
        self._stale_at = self._kernel.now + self._max_age
        told = [topic for topic in answer.topics if topic.name == TOPIC]
        for part in [each for topic in told for each in topic.partitions]:
            partition, node, epoch = part.partition_index, part.leader_id, part.leader_epoch
            known = self.epoch(partition)
            if node < 0:
                self.leaders[partition] = Leader(0, known)
            elif epoch >= known or not self._epochs:
                self.leaders[partition] = Leader(node, epoch)
        self._client.named(tuple([each.node_id for each in answer.brokers]))
        self._client.wake()
