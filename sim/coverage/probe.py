"""The probe: what overlaps, which steps are reached and which messages come late, in one run.

Most of it stands in no history: when a flush begins, whether an answer waits for proof, what a link
carries. So a run is repeated with the probe watching (`run_choices(..., watching=[probe.watch])`).
It listens to the history, to every message, and to every point of a turn (`sim/world/life.py`), and
asks nodes by their views. It makes no choice and adds no event, so the run has the same digest. A
run without it costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ottla.broker.node.inspection import ReplicaView
from ottla.broker.wire.answers import ProduceAnswer
from ottla.log.store import Write
from ottla.raft.messages import InstallSnapshot, SnapshotReply
from ottla.raft.roles import Role
from ottla.raft.types import NO_NODE, EntryKind, GroupId, LogIndex, Micros, NodeId
from ottla.sim.coverage import log_ends
from ottla.sim.coverage.deliveries import Deliveries
from ottla.sim.coverage.overlaps import Overlaps, mask_of
from ottla.sim.coverage.seams import WatchedPoints
from ottla.sim.coverage.steps import (
    ANSWERED,
    CUT,
    ENQUEUED,
    FLUSH,
    FLUSHED,
    STALL,
    WRITTEN,
    Steps,
)
from ottla.sim.history.history import Event
from ottla.sim.world.life import when_awake
from ottla.sim.world.network import Link
from ottla.sim.world.world import World

_ENTRIES = {
    EntryKind.BATCH: "records",
    EntryKind.EMPTY: "first entry",
    EntryKind.COMMAND: "command",
}
_SNAPSHOT, _COMPACTION, _TRUNCATION, _BARRIER, _TRANSFER, _ELECTION, _FLUSH, _EXPIRY = (
    mask_of([each])
    for each in (
        *("snapshot", "compaction", "truncation", "barrier"),
        *("transfer", "election", "flush", "expiry"),
    )
)
_UNFLUSHED = {
    "snapshot installed": _SNAPSHOT,
    "snapshot taken": _COMPACTION,
    "truncation": _TRUNCATION,
}
"""The activities that last until what they write is durable."""


def kinds_of(write: Write) -> list[str]:
    """What a write holds: some of `steps.KINDS`."""
    kinds = {_ENTRIES[each.kind]: None for each in write.entries if each.kind in _ENTRIES}
    if write.hard_state is not None and write.hard_state.vote != NO_NODE:
        kinds["vote"] = None
    if write.truncate:
        kinds["truncation"] = None
    if write.snapshot is not None:
        kinds["snapshot installed" if write.reset else "snapshot taken"] = None
    return list(kinds)


class _Node:
    """What is under way on one node, by group. A crash forgets it all."""

    def __init__(self, links: Sequence[Link]) -> None:
        self.links = links
        self.written: dict[GroupId, dict[str, None]] = {}
        """The kinds that no sync covers yet."""
        self.flushing: dict[GroupId, dict[str, None]] = {}
        """Those that the running sync covers."""
        self.flushed: list[tuple[str, GroupId]] = []
        """The steps at which the sync that has just ended has left replicas."""
        self.flushed_at: Micros = 0
        self.sends: dict[GroupId, dict[NodeId, None]] = {}
        """To whom a snapshot is on its way."""
        self.gets: dict[GroupId, None] = {}
        self.expiries: dict[GroupId, dict[LogIndex, None]] = {}
        """The decisions to forget producers that are not applied."""

    def forget(self) -> None:
        """The node has died."""
        for each in (self.written, self.flushing, self.flushed, self.sends, self.gets):
            each.clear()
        self.expiries.clear()


class Probe:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.overlaps = Overlaps()
        self.steps = Steps()
        self.deliveries = Deliveries()
        self._world: World
        self._nodes: dict[NodeId, _Node] = {}
        self._points: dict[str, Callable[[NodeId, _Node, Any], None]] = {
            "append": self._appends,
            "voted": self._appended,
            "appended": self._appended,
            "sync": self._sync,
            "synced": self._synced,
            "send": self._sends,
            "answer": self._answer,
            "answered": self._answered,
        }
        self._rows: dict[str, Callable[[Event], None]] = {
            "leader": self._leader,
            "stepdown": self._look_at,
            "crash": self._crash,
            "expire": self._expire,
            "truncate": self._truncate,
        }

    def watch(self, world: World) -> None:
        """Watch this world, which is not booted yet."""
        self._world = world
        world.points = WatchedPoints(self.reached)
        world.network.watchers.append(self)
        for node in world.nodes:
            links = [link for name, link in world.network.links.items() if node in name]
            self._nodes[node] = _Node(links)
        for kind, listener in self._rows.items():
            world.history.listen([kind], listener)
        world.history.listen(log_ends.KINDS, log_ends.LogEnds(world.nodes, self._is_at).row)

    # ---- points of a turn

    def reached(self, name: NodeId, point: str, detail: Any) -> None:
        """A node has reached a point."""
        node = self._nodes[name]
        if point != "synced":
            self._goes_on(name)
        handler = self._points.get(point)
        if handler is not None:
            handler(name, node, detail)

    def _goes_on(self, name: NodeId) -> None:
        """A node does something after a sync has ended."""
        node = self._nodes[name]
        if node.flushed:
            flushed, node.flushed = node.flushed, []
            for step, group in flushed:
                self._end(name, step, group)

    def _appends(self, name: NodeId, _: _Node, writes: Sequence[Write]) -> None:
        for write in writes:
            if any(each.kind is EntryKind.BATCH for each in write.entries):
                self._begin(name, ENQUEUED, write.group)

    def _appended(self, name: NodeId, node: _Node, writes: Sequence[Write]) -> None:
        observer = self._world.observer
        for write in writes:
            group = write.group
            self._end(name, ENQUEUED, group)
            kinds = node.written.setdefault(group, {})
            for kind in kinds_of(write):
                kinds[kind] = None
                self._begin(name, f"{kind}: {WRITTEN}", group)
            if "snapshot installed" in kinds:
                node.gets.pop(group, None)
            if group in observer.partitions:
                view = observer.view(name, group)
                forgets = [each.index for each in write.entries if view.at(each.index).expires]
                node.expiries.setdefault(group, {}).update(dict.fromkeys(forgets))
        self._look(*(write.group for write in writes))

    def _sync(self, name: NodeId, node: _Node, _: object) -> None:
        self._stage(name, node.written, WRITTEN, FLUSH)
        node.flushing, node.written = node.written, {}
        self._look(*node.flushing)

    def _synced(self, name: NodeId, node: _Node, _: object) -> None:
        self._stage(name, node.flushing, FLUSH, FLUSHED)
        ended, node.flushing = node.flushing, {}
        for group, kinds in ended.items():
            node.flushed += ((f"{kind}: {FLUSHED}", group) for kind in kinds)
        node.flushed_at = self._world.kernel.now
        self._look(*ended)

    def _answer(self, name: NodeId, _: _Node, answer: object) -> None:
        if isinstance(answer, ProduceAnswer):
            self._begin(name, ANSWERED, id(answer))

    def _answered(self, name: NodeId, _: _Node, answer: object) -> None:
        self._end(name, ANSWERED, id(answer))

    def _stage(
        self, name: NodeId, groups: dict[GroupId, dict[str, None]], before: str, after: str
    ) -> None:
        for group, kinds in groups.items():
            for kind in kinds:
                self._end(name, f"{kind}: {before}", group)
                self._begin(name, f"{kind}: {after}", group)

    def _sends(self, _: NodeId, node: _Node, message: Any) -> None:
        group = getattr(message, "group", None)
        if group is None:
            return
        if message.__class__ is InstallSnapshot:
            node.sends.setdefault(group, {})[message.to] = None
        elif message.__class__ is SnapshotReply and message.done:
            node.gets.pop(group, None)
        self._look(group)

    # ---- messages

    def sent(self, sender: NodeId, to: NodeId, message: Any, *, lost: bool) -> None:
        """See `NetworkWatcher`."""
        partition = self._partition(message)
        if partition is not None or not hasattr(message, "group"):
            self.deliveries.sent(to, message, partition)

    def received(self, to: NodeId, message: Any) -> None:
        """See `NetworkWatcher`."""
        when_awake(self._world.lives.get(to), self._hears, to, message)

    def _hears(self, to: NodeId, message: Any) -> None:
        partition = self._partition(message)
        if partition is not None or not hasattr(message, "group"):
            self.deliveries.arrived(to, message, partition)
        if message.__class__ is InstallSnapshot:
            replica = self._replica(to, message.group)
            if replica is not None and replica.term <= message.term:
                self._nodes[to].gets[message.group] = None
                self._look(message.group)
        elif message.__class__ is SnapshotReply and message.done:
            self._nodes[to].sends.get(message.group, {}).pop(message.sender, None)
            self._look(message.group)

    # ---- rows of the history

    def _leader(self, row: Event) -> None:
        assert row.partition is not None, "a leader is that of a partition"
        self.deliveries.elected(row.partition)
        for group in self._groups(row.partition):
            for node in self._nodes.values():
                node.sends.pop(group, None)
                node.gets.pop(group, None)
            self._look(group)

    def _look_at(self, row: Event) -> None:
        self._look(*self._groups(row.partition))

    def _crash(self, row: Event) -> None:
        """One row for each replica of the node that died."""
        node = _place(row)[0]
        if self._nodes[node].flushed_at < self._world.kernel.now:
            self._goes_on(node)
        self.steps.die(node)
        self._nodes[node].forget()
        self._look_at(row)

    def _expire(self, row: Event) -> None:
        node, partition = _place(row)
        for group in self._groups(partition):
            self._nodes[node].expiries.get(group, {}).pop(row.log_index or 0, None)
            self._look(group)

    def _truncate(self, row: Event) -> None:
        node, partition = _place(row)
        first = row.log_index or 0
        for group in self._groups(partition):
            left = self._nodes[node].expiries.get(group, {})
            for index in [each for each in left if each >= first]:
                del left[index]

    # ---- what is under way

    def _partition(self, message: Any) -> int | None:
        """The partition that a message is about; None: it belongs to no group that is known."""
        group = getattr(message, "group", None)
        return None if group is None else self._world.observer.partitions.get(group)

    def _groups(self, partition: int | None) -> Iterator[GroupId]:
        for group, number in self._world.observer.partitions.items():
            if number == partition:
                yield group

    def _replica(self, node: NodeId, group: GroupId) -> ReplicaView | None:
        life = self._world.lives.get(node)
        return None if life is None else life.view.replica(group)

    def _look(self, *groups: GroupId) -> None:
        for group in dict.fromkeys(groups):
            masks = {node: self._mask(node, group) for node in self._world.lives}
            self.overlaps.see(group, masks)

    def _mask(self, name: NodeId, group: GroupId) -> int:
        node, replica = self._nodes[name], self._replica(name, group)
        mask = _FLUSH if group in node.flushing else 0
        for kinds in (node.written.get(group), node.flushing.get(group)):
            for kind in kinds or ():
                mask |= _UNFLUSHED.get(kind, 0)
        if node.sends.get(group) or group in node.gets:
            mask |= _SNAPSHOT
        if node.expiries.get(group):
            mask |= _EXPIRY
        return mask | _of_role(replica)

    def _begin(self, node: NodeId, step: str, group: Any) -> None:
        self.steps.begin(node, step, group, self._faults(node))

    def _end(self, node: NodeId, step: str, group: Any) -> None:
        self.steps.end(node, step, group, self._faults(node))

    def _is_at(self, node: NodeId, step: str, partition: int, there: bool) -> None:
        (self._begin if there else self._end)(node, step, partition)

    def _faults(self, node: NodeId) -> Iterator[str]:
        if any(link.cut or link.held is not None for link in self._nodes[node].links):
            yield CUT
        if self._world.disks[node].stalls:
            yield STALL


def _place(row: Event) -> tuple[NodeId, int]:
    assert row.node is not None, "a row of a replica"
    assert row.partition is not None, "a row of a replica"
    return row.node, row.partition


def _of_role(replica: ReplicaView | None) -> int:
    """What follows from the role of a replica."""
    if replica is None or replica.role is Role.FOLLOWER:
        return 0
    if replica.role is not Role.LEADER:
        return _ELECTION
    return (_BARRIER if replica.proves else 0) | (_TRANSFER if replica.successor else 0)
