"""The nodes of a cluster: their numbers, their states, and which of them can answer.

`AsyncCluster` and its faults share one `ClusterNodes`. A node is a number. Its present *life* is a
`Node`; a node that was killed, left out or not yet started has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.broker.arguments.arguments import as_whole
from ottla.broker.arguments.spelling import shown
from ottla.broker.cluster.description import Found, replicas_of, serving_of
from ottla.broker.errors import NodeStateError
from ottla.broker.event_loop.lifecycle import Lifecycle
from ottla.broker.images import PartitionImage
from ottla.broker.node.folders import left_out
from ottla.broker.node.node import Node
from ottla.broker.transport.in_process import Network
from ottla.raft.types import Micros


class ClusterNodes:
    """See the module's docstring."""

    def __init__(
        self,
        ids: Sequence[int],
        without: Sequence[int],
        network: Network,
        lifecycle: Lifecycle,
        hangs: Callable[[int], bool],
    ):
        """`without` are those of `ids` that were left out at the start. `hangs`: whether a node's
        disk was made to hang."""
        self.ids = tuple(ids)
        self.without = tuple(without)
        self.lives: dict[int, Node] = {}
        """The present life of each node that has one."""
        self.why_dead = {node: left_out(node) for node in without}
        """Why a node has no life, if it was not killed."""
        self._network = network
        self._lifecycle = lifecycle
        self._hangs = hangs

    def check_ours(self) -> None:
        """Raises `NodeStateError` in a forked child: the cluster is the parent's."""
        self._lifecycle.check_ours()

    def check(self, node: object) -> int:
        """Check that the cluster is of this process and has this node; returns its number. Raises
        `NodeStateError`."""
        self.check_ours()
        number = as_whole(node)
        if number is None or number not in self.ids:
            raise NodeStateError(f"there is no node {shown(node)}; nodes are 1 to {len(self.ids)}")
        if number in self.without:
            raise NodeStateError(left_out(number))
        return number

    def check_begun(self) -> None:
        """Raises `NodeStateError` when the cluster has not been started, or was stopped, and in a
        forked child."""
        self.check_ours()
        if not self._lifecycle.begun:
            raise NodeStateError("the cluster is not running: start it first")

    def life(self, node: int) -> Node:
        """One node's present life. Raises `NodeStateError` when it is dead."""
        node = self.check(node)
        life = self.lives.get(node)
        if life is None:
            self.check_begun()
            raise NodeStateError(f"node {node} is dead; restart({node}) brings it back")
        return life

    def alive(self, node: int) -> Node:
        """One node's present life, unless it has stopped by itself. Raises `NodeStateError`."""
        life = self.life(node)
        node = life.node
        if life.failed is not None:
            raise NodeStateError(f"node {node} has failed; restart({node}) brings it back")
        return life

    def state(self, node: int) -> str:
        """A node's state: running, paused, isolated, failed, dead or left out. A node that is
        paused and isolated is called paused."""
        life = self.lives.get(node)
        if life is None or not life.joined:
            return "left out" if node in self.without else "dead"
        if life.failed is not None:
            return "failed"
        if life.runner.paused:
            return "paused"
        return "isolated" if self._network.isolated(node) else "running"

    def running(self) -> list[Node]:
        """Nodes that can take part now. Raises `NodeStateError` if there are none."""
        running = [life for node, life in self.lives.items() if self.state(node) == "running"]
        if not running:
            raise NodeStateError("no node is running; restart, resume or heal one first")
        return running

    def controlling(self) -> Node | None:
        """The running node that controls: of several, that of the highest term. None while nobody
        controls."""
        led = {life: life.inspect().controller() for life in self.running()}
        terms = {life: seen.term for life, seen in led.items() if seen and life.inspect().controls}
        return max(terms, key=terms.__getitem__, default=None)

    def learning(self) -> list[Node]:
        """The running nodes that learn what the controller decides: their disks do not hang, and
        they and the controller's node heard each other within an election timeout. All running
        nodes if there are none. Raises `NodeStateError` if no node is running."""
        running, leading = self.running(), self.controlling()
        if leading is None:
            return running
        there, number = leading.inspect(), leading.node
        within: Micros = leading.config.election_timeout_ms * 1000
        return [
            life
            for life in running
            if there.hears(life.node, within)
            and life.inspect().hears(number, within)
            and not self._hangs(life.node)
            and not life.runner.syncer.stalled()
        ] or running

    def informed(self) -> bool:
        """Whether a node controls, and all nodes that learn of it have applied what it and earlier
        ones decided."""
        leading = self.controlling()
        if leading is None:
            return False
        decided = leading.inspect().decisions_applied
        return all(life.inspect().decisions_applied >= decided for life in self.learning())

    def check_start(self) -> None:
        """Check that a start may still succeed. Raises `NodeStateError` if so many nodes have
        stopped by themselves that no majority is left."""
        stopped = [life for life in self.lives.values() if life.failed is not None]
        if stopped and 2 * (len(self.lives) - len(stopped)) <= len(self.ids):
            told = "; ".join(f"node {life.node} stopped: {life.failed}" for life in stopped)
            raise NodeStateError(f"no majority of the nodes could start: {told}")

    def serving(self, image: PartitionImage) -> Found | None:
        """The replica that serves a partition, with its node. A paused node does not serve."""
        replicas = replicas_of(image, self.lives)
        return serving_of([each for each in replicas if not self.lives[each[0]].runner.paused])
