"""Programs that wait for a point in a turn: faults at that point, and the steps that lead there.

Some errors show only if a node dies between a vote and the next vote request, or between an entry
and the disk. Random times practically never hit that (SIM-MOMENTS). Each of these programs brings
about a state in which a single safety mechanism prevents a failure, and then the fault. All of it
can really happen: timers that ring together, disks that hang, links that fail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.node.handover import stand_for_election
from ottla.broker.node.inspection import ReplicaView
from ottla.raft.messages import AppendEntries, AppendReply, RequestVote, VoteReply
from ottla.raft.types import EntryKind, GroupId, NodeId
from ottla.sim.nemesis.fault_context import MS, FaultContext
from ottla.sim.world.points import Trap, sends_entries

Led: TypeAlias = tuple[NodeId, ReplicaView]
"""A leader, and its replica of what it leads."""

# ---- what passes a point


def opens_a_term(writes: Any) -> bool:
    """Whether a leader's own first entry is among the writes."""
    return any(entry.kind is EntryKind.EMPTY for write in writes for entry in write.entries)


def holds_records(writes: Any) -> bool:
    """Whether records are among the writes."""
    return any(entry.kind is EntryKind.BATCH for write in writes for entry in write.entries)


def decides(message: Any) -> bool:
    """The controller's leader sends a decision to a follower."""
    return (
        isinstance(message, AppendEntries)
        and message.group == CONTROLLER_GROUP
        and any(entry.kind is EntryKind.COMMAND for entry in message.entries)
    )


def acknowledges(message: Any) -> bool:
    """Whether a follower confirms that it has entries."""
    return isinstance(message, AppendReply) and message.success


def opens(group: GroupId) -> Callable[[Any], bool]:
    """Fits a leader's own first entry in a group."""
    return lambda writes: opens_a_term([each for each in writes if each.group == group])


def _asks_first(group: GroupId) -> Callable[[Any], bool]:
    return lambda message: (
        isinstance(message, RequestVote) and message.pre and message.group == group
    )


def _votes(group: GroupId) -> Callable[[Any], bool]:
    """Fits a vote: a node's own, or one for another node."""
    return lambda message: (
        (isinstance(message, RequestVote) or (isinstance(message, VoteReply) and message.granted))
        and not message.pre
        and message.group == group
    )


# ---- programs


def _nothing(_: FaultContext) -> None:
    """Nothing leads to the point: it is reached by chance."""


def die_at(
    point: str,
    what: str,
    fits: Callable[[Any], bool] | None = None,
    *,
    before: Callable[[FaultContext], None] = _nothing,
) -> Callable[[FaultContext], None]:
    """A program: the node that reaches `point` loses its power. `before` leads to that point."""

    def run(hand: FaultContext) -> None:
        before(hand)

        die = partial(lose_power, hand, what)
        node = hand.somebody() if hand.stream.below(2) else None
        trap = hand.world.points.set(Trap(point, die, node, 1 + hand.stream.below(4), fits))
        hand.later(8 * hand.span(), hand.world.points.lift, trap)

    return run


def die_in_flush(hand: FaultContext, what: str, node: NodeId) -> None:
    """A node that has just written something loses its power while its disk flushes that. The flush
    takes longer than usual."""
    election = hand.world.config.election_timeout_ms * MS

    def begins(_: NodeId) -> None:
        hand.world.disks[node].stall(election // 2)
        hand.later(election // 4, lose_power, hand, what, node)

    _at_the_next(hand, "sync", begins, node)


def die_flushed(hand: FaultContext, what: str, node: NodeId) -> None:
    """A node that has just written something loses its power when its disk has flushed that, before
    anybody is told."""

    def begins(_: NodeId) -> None:
        _at_the_next(hand, "synced", partial(lose_power, hand, what), node)

    _at_the_next(hand, "sync", begins, node)


def _at_the_next(
    hand: FaultContext, point: str, act: Callable[[NodeId], None], node: NodeId
) -> None:
    trap = hand.world.points.set(Trap(point, act, node))
    hand.later(8 * hand.world.config.election_timeout_ms * MS, hand.world.points.lift, trap)


def lose_power(hand: FaultContext, what: str, node: NodeId) -> None:
    """A node loses its power, and is started again after a while."""
    hand.world.crash(node, what, power=True)
    hand.revive(node, hand.span())


def crash_leader(hand: FaultContext) -> None:
    """The leader dies, and comes back after some time with its log."""
    node = hand.leader()
    hand.world.crash(node)
    hand.revive(node, hand.span())


def crash_loop(hand: FaultContext) -> None:
    """The next leader dies at its first append, several times."""
    points, times = hand.world.points, 1 + hand.stream.below(4)
    traps: list[Trap] = []

    def die(node: NodeId) -> None:
        nonlocal times
        hand.world.crash(node, "its first append as leader", power=True)
        hand.revive(node, hand.span())
        times -= 1
        if times:
            traps.append(points.set(Trap("appended", die, fits=opens_a_term)))

    def give_up() -> None:
        points.lift(traps[-1])

    crash_leader(hand)
    traps.append(points.set(Trap("appended", die, fits=opens_a_term)))
    hand.later(8 * hand.span(), give_up)


def win_and_go(hand: FaultContext) -> None:
    """A new leader is cut off from its peers when it has written its first entry, then dies."""
    world = hand.world

    def cut(node: NodeId) -> None:
        world.fault("isolated when it had won", node)
        span = hand.span()
        hand.cut([name for name in world.network.links if node in name], 2 * span)
        hand.later(span, world.crash, node, "having won")
        hand.revive(node, 2 * span)

    crash_leader(hand)
    trap = world.points.set(Trap("appended", cut, fits=opens_a_term))
    hand.later(8 * hand.span(), world.points.lift, trap)


def rivals(hand: FaultContext) -> None:
    """The leader dies, and two nodes stand for election at once. The node that has just voted, for
    itself or for another, loses its power, and is back while the election goes on."""
    world, stream = hand.world, hand.stream
    found = led(hand)
    if found is None:
        return
    leader, replica = found
    election = world.config.election_timeout_ms * MS

    def join(node: NodeId) -> None:
        others = [each for each in world.lives if each != node]
        if others:
            hand.later(0, _stand, hand, stream.pick(others), replica.group)

    def die(node: NodeId) -> None:
        world.crash(node, "its vote given", power=True)
        hand.revive(node, election // 10 * (1 + stream.below(4)))

    world.crash(leader)
    hand.revive(leader, 2 * hand.span())
    for trap in (
        Trap("sent", join, fits=_asks_first(replica.group)),
        Trap("sent", die, count=1 + stream.below(4), fits=_votes(replica.group)),
    ):
        world.points.set(trap)
        hand.later(8 * hand.span(), world.points.lift, trap)


def figure_8(hand: FaultContext) -> None:
    """Figure 8 of the Raft paper. A leader is alone with the entries that it gets. Another one
    wins, and is alone with its first entry. The first one wins again, and replicates its old
    entries to a majority before its own first entry is on its disk. Then it loses its power, and
    the second one comes back."""
    found = led(hand)
    if found is None:
        return
    world = hand.world
    leader, replica = found
    election = world.config.election_timeout_ms * MS
    links = world.network.links

    def second_wins(second: NodeId) -> None:
        if second == leader:
            return  # other faults have let it win again
        world.fault("isolated when it had won", second)
        hand.cut([name for name in links if second in name], 8 * election)
        rest = [each for each in replica.voters if each not in {leader, second}]
        majority = rest[: len(replica.voters) // 2]
        for other in majority:
            links[leader, other].cut = links[other, leader].cut = False
        trap = world.points.set(
            Trap(
                "append", lambda _: first_wins(second, majority), leader, fits=opens(replica.group)
            )
        )
        hand.later(8 * election, world.points.lift, trap)

    def first_wins(second: NodeId, majority: list[NodeId]) -> None:
        world.fault("its disk stalls with its first entry", leader)
        world.disks[leader].stall(8 * election)
        hand.later(election // 2, second_comes_back, second, majority)

    def second_comes_back(second: NodeId, majority: list[NodeId]) -> None:
        world.crash(leader, "its old entries on a majority", power=True)
        hand.cut([name for name in links if set(name) & set(majority)], 4 * election)
        links[leader, second].cut = links[second, leader].cut = False
        world.disks[leader].heal()
        hand.revive(leader, 0)

    world.fault("isolated", leader)
    hand.cut([name for name in links if leader in name], 8 * election)
    trap = world.points.set(Trap("append", second_wins, fits=opens(replica.group)))
    hand.later(8 * election, world.points.lift, trap)


def late_sync(hand: FaultContext) -> None:
    """A leader's disk hangs with entries that a new leader replaces. The sync of the replaced
    entries ends when the sync of the new ones has only begun, and no other replica holds them."""
    found = led(hand)
    if found is None:
        return
    world = hand.world
    leader, replica = found
    election = world.config.election_timeout_ms * MS
    links, disk = world.network.links, world.disks[leader]

    def second_wins(second: NodeId) -> None:
        voters = replica.voters
        if second == leader:
            return  # other faults have let it win again
        rest = [each for each in voters if each not in {leader, second}]
        away = rest[len(voters) // 2 - 1 :]
        world.fault(f"left alone with {leader}: {away} are cut off", second)
        hand.cut([name for name in links if set(name) & set(away)], 6 * election)
        links[leader, second].cut = links[second, leader].cut = False
        hand.later(election // 2, sync_ends)

    def sync_ends() -> None:
        disk.go_on()
        disk.stall(4 * election)

    world.fault("isolated, its disk hangs", leader)
    hand.cut([name for name in links if leader in name], 8 * election)
    hand.later(8 * election, hand.hang(leader))
    trap = world.points.set(Trap("append", second_wins, fits=opens(replica.group)))
    hand.later(8 * election, world.points.lift, trap)


def two_leaders(hand: FaultContext, of: Led | None = None) -> None:
    """A leader is frozen with its last entries on their way, and goes on when another one leads. It
    finds the old acknowledgements and takes them for new ones. So it keeps its clients until
    check-quorum ends its leadership, and does not know what its successor has stored (sim-S13).
    `of`: the leader, and its replica; one is drawn if none is given."""
    found = of or led(hand)
    if found is None:
        return
    world = hand.world
    leader, replica = found
    election = world.config.election_timeout_ms * MS
    links = [name for name in world.network.links if leader in name]

    def stop(_: NodeId) -> None:
        thaw = hand.freeze(leader)

        def second_wins(_: NodeId) -> None:
            # Time for clients to find it, and to write past what the old leader knows.
            hand.later(election // 2 * hand.stream.pick((1, 2, 4)), thaw)

        # By then the acknowledgements have arrived, and no node has asked for votes.
        hand.later(election // 2, hand.cut, links, 8 * election)
        hand.later(6 * election, thaw)
        trap = world.points.set(Trap("append", second_wins, fits=opens(replica.group)))
        hand.later(6 * election, world.points.lift, trap)

    trap = world.points.set(Trap("sent", stop, leader, fits=sends_entries(replica.group)))
    hand.later(4 * election, world.points.lift, trap)


def late_leader(hand: FaultContext) -> None:
    """What a leader sends is held up until another one leads, and arrives then."""
    world = hand.world
    node = hand.leader()
    held = [name for name in world.network.links if name[0] == node]
    world.fault("what it sends is held up", node)
    span = hand.span() + 2 * world.config.election_timeout_ms * MS
    for name in held:
        hand.clog(name, span)


def torn_write(hand: FaultContext) -> None:
    """The power fails while records are written; the node with the torn write then stands for
    election."""
    world = hand.world

    def die(node: NodeId) -> None:
        world.crash(node, "half a write", power=True, torn=True)
        hand.revive(node, hand.span() // 4)
        if hand.stream.below(2):
            for other in tuple(world.lives):
                world.crash(other)
                hand.revive(other, hand.span())

    trap = world.points.set(
        Trap("appended", die, count=1 + hand.stream.below(4), fits=holds_records)
    )
    hand.later(4 * hand.span(), world.points.lift, trap)


def stuck_disk(hand: FaultContext) -> None:
    """A leader's disk hangs for long, maybe for ever, and so does its link to one follower."""
    world = hand.world
    node = hand.leader()
    span = 64 * world.config.election_timeout_ms * MS
    others = [each for each in world.nodes if each != node]
    other = hand.stream.pick(others)
    world.fault(f"its disk hangs, and its link to node {other}", node)
    hand.later(span, hand.hang(node))
    hand.cut([(node, other), (other, node)], span)


def led(hand: FaultContext) -> Led | None:
    """The leader of some partition and its replica there; half of the time of the partition that
    the sequential client works with."""
    world = hand.world
    other = world.other_leader()
    if other is not None and hand.stream.below(2) == 1:
        return other[0].node_id, other[1]
    partition = hand.stream.below(world.config.partitions)
    life = world.leader(partition)
    if life is None:
        return None
    return life.node_id, world.replicas(partition)[life.node_id]


def _stand(hand: FaultContext, node: NodeId, group: GroupId) -> None:
    """A timer rings early: the node stands for election."""
    life = hand.world.lives.get(node)
    if life is not None:
        life.enter(stand_for_election, life.node, group)
