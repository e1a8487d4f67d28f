"""Programs that move a log's start, and the snapshots that follow: taken and installed.

Records are deleted, and a snapshot replaces them. A follower that was away and needs an entry below
it must install the snapshot. By chance that hardly ever happens: a follower must be away while the
log start passes all that it holds, and be back before the run ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.broker.turn.tickets import DeleteRecordsTicket
from ottla.raft.messages import InstallSnapshot, SnapshotReply
from ottla.raft.types import GroupId, NodeId
from ottla.sim.nemesis.fault_context import MS, FaultContext
from ottla.sim.nemesis.timed_faults import die_flushed, lose_power
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.life import awake
from ottla.sim.world.points import Trap
from ottla.sim.world.world import World


def delete_records(hand: FaultContext) -> None:
    """An administrator deletes records at the front of a partition."""
    world = hand.world
    partition = hand.stream.below(world.config.partitions)
    end = int(world.high_watermark(partition, -1))
    if end >= 0:
        _delete(hand, partition, hand.stream.below(end + 1))


def overtaken(hand: FaultContext) -> None:
    """A follower is away until a snapshot covers entries that it lacks. One of six things is drawn:
    nothing more happens; it dies at the write that installs the snapshot; its leader dies at the
    write that takes it; a second snapshot is taken while the first is on its way; the follower dies
    when the snapshot that it has installed is flushed; or it is restarted when it has a part of the
    snapshot."""
    world, stream = hand.world, hand.stream
    partition = stream.below(world.config.partitions)
    life = world.leader(partition)
    if life is None:
        return
    replica = world.replicas(partition)[life.node_id]
    followers = [each for each in replica.voters if each != life.node_id]
    if not followers:
        return
    node, span = stream.pick(followers), hand.span() + 2 * _election(hand)
    _be_away(hand, node, span)
    for third in (span // 3, 2 * span // 3):
        hand.later(third, _delete_all, hand, partition)
    group = replica.group
    dies = partial(lose_power, hand)
    traps = (
        None,
        Trap("appended", partial(dies, "a snapshot installed"), node, fits=_installs(group)),
        Trap("appended", partial(dies, "a snapshot taken"), life.node_id, fits=_takes(group)),
        Trap("send", partial(_send_late, hand, partition, node), fits=_reaches(world, group, node)),
        Trap(
            "appended", partial(die_flushed, hand, "a snapshot kept"), node, fits=_installs(group)
        ),
        Trap("sent", partial(_restart, hand), node, fits=_has_a_part(group)),
    )
    trap = stream.pick(traps)
    if trap is not None:
        world.points.set(trap)
        hand.later(4 * span, world.points.lift, trap)


def _be_away(hand: FaultContext, node: NodeId, span: int) -> None:
    """Let it be cut off, or dead in one of two ways."""
    world = hand.world
    how = hand.stream.below(3)
    if how:
        world.crash(node, "to be overtaken", power=how == 1)
        hand.revive(node, span)
    else:
        world.fault("isolated, to be overtaken", node)
        hand.cut([name for name in world.network.links if node in name], span)


def _restart(hand: FaultContext, node: NodeId) -> None:
    """It is back before the others would elect another leader, and has nothing of the snapshot."""
    hand.world.crash(node, "a part of a snapshot received")
    hand.revive(node, _election(hand) // 10)


def _send_late(hand: FaultContext, partition: int, node: NodeId, sender: NodeId) -> None:
    """Messages to the follower wait, and a second snapshot overtakes the first."""
    election = _election(hand)
    hand.world.fault(f"its snapshot for node {node} is held up", sender)
    hand.clog((sender, node), 2 * election)
    hand.later(election, _delete_all, hand, partition)


def _election(hand: FaultContext) -> int:
    return hand.world.config.election_timeout_ms * MS


# ---- what passes a point


def _installs(group: GroupId) -> Callable[[Any], bool]:
    return lambda writes: any(each.group == group and each.reset for each in writes)


def _takes(group: GroupId) -> Callable[[Any], bool]:
    return lambda writes: any(
        each.group == group and each.snapshot is not None and not each.reset for each in writes
    )


def _has_a_part(group: GroupId) -> Callable[[Any], bool]:
    return lambda message: (
        isinstance(message, SnapshotReply)
        and message.group == group
        and bool(message.received)
        and not message.done
    )


def _reaches(world: World, group: GroupId, node: NodeId) -> Callable[[Any], bool]:
    """Fits a snapshot for that node, if the node is up to receive it."""
    return lambda message: (
        isinstance(message, InstallSnapshot)
        and (message.group, message.to) == (group, node)
        and node in world.lives
        and not world.network.links[message.sender, node].cut
    )


# ---- deleting


def _delete_all(hand: FaultContext, partition: int) -> None:
    """Delete all records."""
    end = int(hand.world.high_watermark(partition, 0))
    if end:
        _delete(hand, partition, end)


def _delete(hand: FaultContext, partition: int, offset: int) -> None:
    world = hand.world
    life = awake(world.leader(partition))
    if life is None:
        return
    world.fault(f"records of partition {partition} below {offset} deleted", life.node_id)
    deadline = life.clockwork.now() + 5_000 * MS
    inbox = life.node.replica(TOPIC, partition)
    ticket = DeleteRecordsTicket(offset, _unheard, deadline)
    life.enter(life.node.submit, inbox, ticket)


def _unheard(_: DeleteRecordsTicket) -> None:
    """No client waits for the answer."""
