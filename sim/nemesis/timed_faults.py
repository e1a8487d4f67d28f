"""Programs that wait for a moment: faults at points in the middle of a turn, and what leads there.

What only shows when a node dies between a vote and the next request for one, or between an entry
and the disk, no random time ever hits (SIM-MOMENTS). Each of these brings
about a state in which one safety mechanism alone stands between the cluster and disaster, and then
the fault. All of it can happen: timers that ring together, disks that hang, links that fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.node.handover import stand_for_election
from ottla.broker.node.inspection import ReplicaView
from ottla.raft.messages import AppendEntries, AppendReply, RequestVote, VoteReply
from ottla.raft.types import EntryKind, GroupId, NodeId
from ottla.sim.nemesis.fault_context import MS, FaultContext
from ottla.sim.world.life import Life
from ottla.sim.world.points import Trap

# ---- what is passing


def opens_a_term(writes: Any) -> bool:
    """A leader's own first entry is among what was written."""
    return any(entry.kind is EntryKind.EMPTY for write in writes for entry in write.entries)


def holds_records(writes: Any) -> bool:
    """Records are."""
    return any(entry.kind is EntryKind.BATCH for write in writes for entry in write.entries)


def acknowledges(message: Any) -> bool:
    """A follower says that it has something."""
    return isinstance(message, AppendReply) and message.success


def _opens(group: GroupId) -> Callable[[Any], bool]:
    return lambda writes: opens_a_term([each for each in writes if each.group == group])


def _appends(group: GroupId) -> Callable[[Any], bool]:
    """A leader sends entries."""
    return lambda message: (
        isinstance(message, AppendEntries) and bool(message.entries) and message.group == group
    )


def _asks_first(group: GroupId) -> Callable[[Any], bool]:
    return lambda message: (
        isinstance(message, RequestVote) and message.pre and message.group == group
    )


def _votes(group: GroupId) -> Callable[[Any], bool]:
    """For itself, or for another."""
    return lambda message: (
        (isinstance(message, RequestVote) or (isinstance(message, VoteReply) and message.granted))
        and not message.pre
        and message.group == group
    )


# ---- programs


def _nothing(_: FaultContext) -> None:
    """It comes about by itself."""


def die_at(
    point: str,
    what: str,
    fits: Callable[[Any], bool] | None = None,
    *,
    before: Callable[[FaultContext], None] = _nothing,
) -> Callable[[FaultContext], None]:
    """Power goes when somebody gets there. `before`: what has somebody get there at all."""

    def run(hand: FaultContext) -> None:
        before(hand)

        def die(life: Life) -> None:
            hand.world.crash(life.node_id, what, power=True)
            hand.revive(life.node_id, hand.span())

        node = hand.somebody() if hand.stream.below(2) else None
        trap = hand.world.points.set(Trap(point, die, node, 1 + hand.stream.below(4), fits))
        hand.later(8 * hand.span(), hand.world.points.lift, trap)

    return run


def crash_leader(hand: FaultContext) -> None:
    """The leader dies, and is back after some time with the log that it had."""
    node = hand.leader()
    hand.world.crash(node)
    hand.revive(node, hand.span())


def crash_loop(hand: FaultContext) -> None:
    """Whoever leads next dies at its first append, some times over."""
    points, times = hand.world.points, 1 + hand.stream.below(4)
    traps: list[Trap] = []

    def die(life: Life) -> None:
        nonlocal times
        hand.world.crash(life.node_id, "its first append as leader", power=True)
        hand.revive(life.node_id, hand.span())
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

    def cut(life: Life) -> None:
        world.fault("isolated when it had won", life.node_id)
        span = hand.span()
        hand.cut([name for name in world.network.links if life.node_id in name], 2 * span)
        hand.later(
            span,
            world.crash,
            life.node_id,
            "having won",
        )
        hand.revive(life.node_id, 2 * span)

    crash_leader(hand)
    trap = world.points.set(Trap("appended", cut, fits=opens_a_term))
    hand.later(8 * hand.span(), world.points.lift, trap)


def rivals(hand: FaultContext) -> None:
    """The leader dies, two stand for election at once, and who has just voted, for itself or for
    another, loses its power and is back while the election goes on."""
    world, stream = hand.world, hand.stream
    found = _led(hand)
    if found is None:
        return
    leader, replica = found
    election = world.config.election_timeout_ms * MS

    def join(life: Life) -> None:
        others = [each for each in world.lives if each != life.node_id]
        if others:
            hand.later(0, _stand, hand, stream.pick(others), replica.group)

    def die(life: Life) -> None:
        world.crash(life.node_id, "its vote given", power=True)
        hand.revive(life.node_id, election // 10 * (1 + stream.below(4)))

    world.crash(leader)
    hand.revive(leader, 2 * hand.span())
    for trap in (
        Trap("sent", join, fits=_asks_first(replica.group)),
        Trap("sent", die, count=1 + stream.below(4), fits=_votes(replica.group)),
    ):
        world.points.set(trap)
        hand.later(8 * hand.span(), world.points.lift, trap)


def figure_8(hand: FaultContext) -> None:
    """Figure 8 of the Raft paper. A leader is alone with what it is sent; another one wins, and is
    alone with its first entry; the first one wins again, has its old entries on a majority before
    its own first one is on its disk, and loses its power; the second one comes back."""
    found = _led(hand)
    if found is None:
        return
    world = hand.world
    leader, replica = found
    election = world.config.election_timeout_ms * MS
    links = world.network.links

    def second_wins(life: Life) -> None:
        second = life.node_id
        if second == leader:
            return  # what else is going on has let it win again
        world.fault("isolated when it had won", second)
        hand.cut([name for name in links if second in name], 8 * election)
        rest = [each for each in replica.voters if each not in {leader, second}]
        majority = rest[: len(replica.voters) // 2]
        for other in majority:
            links[leader, other].cut = links[other, leader].cut = False
        trap = world.points.set(
            Trap(
                "append", lambda _: first_wins(second, majority), leader, fits=_opens(replica.group)
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
    trap = world.points.set(Trap("append", second_wins, fits=_opens(replica.group)))
    hand.later(8 * election, world.points.lift, trap)


def late_sync(hand: FaultContext) -> None:
    """A leader's disk hangs with entries that a new leader replaces; the sync of what is gone ends
    when that of what took its place has only begun, and nobody else is there to count on."""
    found = _led(hand)
    if found is None:
        return
    world = hand.world
    leader, replica = found
    election = world.config.election_timeout_ms * MS
    links, disk = world.network.links, world.disks[leader]

    def second_wins(life: Life) -> None:
        second, voters = life.node_id, replica.voters
        if second == leader:
            return  # what else is going on has let it win again
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
    trap = world.points.set(Trap("append", second_wins, fits=_opens(replica.group)))
    hand.later(8 * election, world.points.lift, trap)


def two_leaders(hand: FaultContext) -> None:
    """A leader is stopped with its last entries on their way, and goes on when another one leads.
    It finds the acknowledgements of then, takes them for fresh, and leads clients on for as long as
    check-quorum lets it: what its successor has stored it does not know (sim-S13)."""
    found = _led(hand)
    if found is None:
        return
    world = hand.world
    leader, replica = found
    election = world.config.election_timeout_ms * MS
    links = [name for name in world.network.links if leader in name]

    def stop(_: Life) -> None:
        thaw = hand.freeze(leader)

        def second_wins(_: Life) -> None:
            # Time for clients to find it, and to come as far as the old one is not.
            hand.later(election // 2 * hand.stream.pick((1, 2, 4)), thaw)

        # By then the acknowledgements are there, and nobody has asked for votes.
        hand.later(election // 2, hand.cut, links, 8 * election)
        hand.later(6 * election, thaw)
        trap = world.points.set(Trap("append", second_wins, fits=_opens(replica.group)))
        hand.later(6 * election, world.points.lift, trap)

    trap = world.points.set(Trap("sent", stop, leader, fits=_appends(replica.group)))
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
    """Power goes in the middle of writing records; who has half of one is asked to lead next."""
    world = hand.world

    def die(life: Life) -> None:
        world.crash(life.node_id, "half a write", power=True, torn=True)
        hand.revive(life.node_id, hand.span() // 4)
        if hand.stream.below(2):
            for other in tuple(world.lives):
                world.crash(other)
                hand.revive(other, hand.span())

    trap = world.points.set(
        Trap("appended", die, count=1 + hand.stream.below(4), fits=holds_records)
    )
    hand.later(4 * hand.span(), world.points.lift, trap)


def stuck_disk(hand: FaultContext) -> None:
    """A leader's disk hangs for long, maybe for good, and so does its link to one follower."""
    world = hand.world
    node = hand.leader()
    span = 64 * world.config.election_timeout_ms * MS
    others = [each for each in world.nodes if each != node]
    other = hand.stream.pick(others)
    world.fault(f"its disk hangs, and its link to node {other}", node)
    hand.later(span, hand.hang(node))
    hand.cut([(node, other), (other, node)], span)


def _led(hand: FaultContext) -> tuple[NodeId, ReplicaView] | None:
    """The leader of some partition and its replica there."""
    world = hand.world
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
