"""`FaultContext`: what a program of the nemesis picks from, and what it can do for a while.

All choices come from the stream `nemesis`. Zero is always the plainest: the first node, the
shortest span.

Faults overlap, and the end of one must not end another. If several faults affect the same link,
disk or life, it is restored when the last of them ends (`FaultContext.hold`). A program whose next
step needs something mended (`figure_8`) mends it, whichever fault broke it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import TypeAlias

from ottla.raft.types import Micros, NodeId
from ottla.sim.chance.choices import Stream
from ottla.sim.chance.delays import exponential
from ottla.sim.world.network import LinkName
from ottla.sim.world.world import World

MS: Micros = 1_000
OTHERS = 4
"""Of eight leaders that are picked three lead the sequential client's partition."""
End: TypeAlias = Callable[[], None]


class FaultContext:
    """See the module's docstring."""

    def __init__(self, world: World, stream: Stream):
        self.world = world
        self.stream = stream
        self.stopped = False
        """Whether the run settles: `World.heal` has undone what was to be undone later."""
        self._holds: Counter[Hashable] = Counter()

    # ---- picking

    def node(self) -> NodeId:
        """Any node."""
        return self.stream.pick(self.world.nodes)

    def leader(self) -> NodeId:
        """The leader of some partition, sometimes of the sequential client's, sometimes the
        controller; any node if there is no leader."""
        world, stream = self.world, self.stream
        partition = stream.below(world.config.partitions)
        life = world.leader(partition)
        which = stream.below(8)
        if which == 1:
            life = world.controller() or life
        elif which > OTHERS:
            other = world.other_leader()
            life = life if other is None else other[0]
        return self.node() if life is None else life.node_id

    def follower(self) -> NodeId:
        """A node that does not lead partition 0."""
        life = self.world.leader(0)
        others = [each for each in self.world.nodes if life is None or each != life.node_id]
        return self.stream.pick(others or self.world.nodes)

    def somebody(self) -> NodeId:
        """The leader in two of three cases, otherwise a follower."""
        return self.leader() if self.stream.below(3) < 2 else self.follower()

    def span(self) -> Micros:
        """How long a fault lasts: shorter or longer than an election, sometimes much longer."""
        election = self.world.config.election_timeout_ms * MS
        times = self.stream.pick((1, 2, 4, 16))
        return election * times // 2 + exponential(self.stream, election // 2)

    # ---- doing

    def later(self, span: Micros, call: Callable[..., object], *arguments: object) -> None:
        """Call it after `span`, unless all faults have ended by then."""
        self.world.kernel.after(span, self._unless_stopped, partial(call, *arguments))

    def _unless_stopped(self, call: Callable[[], object]) -> None:
        if not self.stopped:
            call()

    def hold(self, what: Hashable, undo: Callable[[], object]) -> End:
        """A fault holds `what` in its present state. Returns what ends that; only its first call
        counts. `undo` is called when no fault holds it any more."""
        self._holds[what] += 1
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._holds[what] -= 1
                if not self._holds[what]:
                    undo()

        return end

    def cut(self, links: Iterable[LinkName], span: Micros) -> None:
        """Cut links for a while."""
        network = self.world.network
        names = [name for name in links if name[0] != name[1]]
        network.cut(names)
        undo = [partial(setattr, network.links[name], "cut", False) for name in names]
        ends = [self.hold(("cut", name), each) for name, each in zip(names, undo, strict=True)]
        self.later(span, _end_all, ends)

    def clog(self, name: LinkName, span: Micros) -> None:
        """Clog a link for a while."""
        network = self.world.network
        network.clog(name)
        self.later(span, self.hold(("clog", name), partial(network.release, name)))

    def freeze(self, node: NodeId) -> End:
        """Freeze a process; returns what lets it go on, which does nothing to a later life."""
        world = self.world
        life = world.lives.get(node)
        world.freeze(node)

        def thaw() -> None:
            if world.lives.get(node) is life:
                world.thaw(node)

        return self.hold(("freeze", node, life), thaw)

    def hang(self, node: NodeId) -> End:
        """Let no sync of a disk end; returns what ends that."""
        disk = self.world.disks[node]
        disk.hang()
        return self.hold(("hang", node), disk.go_on)

    def revive(self, node: NodeId, span: Micros) -> None:
        """Start a node again after `span`, if it is dead then."""
        self.later(span, self._start, node)

    def _start(self, node: NodeId) -> None:
        if node not in self.world.lives:
            self.world.start(node)


def _end_all(ends: Iterable[End]) -> None:
    for end in ends:
        end()
