"""Programs about entries that a new leader replaces.

A leader that is cut off goes on appending for up to an election timeout. The next leader's entries
replace these (*truncation*). Left to chance, the write that replaces them takes less than a
millisecond, so no other event falls into it; and a decision to forget producers is seldom among
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.node.handover import hand_over
from ottla.raft.types import EntryKind, GroupId, NodeId
from ottla.sim.nemesis.fault_context import MS, FaultContext
from ottla.sim.nemesis.returns import lead_again
from ottla.sim.nemesis.timed_faults import die_flushed, die_in_flush, led
from ottla.sim.world.life import awake
from ottla.sim.world.points import Trap


def held_truncation(hand: FaultContext) -> None:
    """A leader is cut off with entries of its own. The next node that replaces entries is hit at
    that write. One of four ways is drawn:

    * its disk stalls, and nothing else happens;
    * its disk stalls, and the new leader hands over in the meantime;
    * its disk stalls, and it loses its power during the flush;
    * its disk does not stall, and it loses its power when the flush has ended.
    """
    found = led(hand)
    if found is None:
        return
    world, stream = hand.world, hand.stream
    leader, _ = found
    election = world.config.election_timeout_ms * MS
    span = election * stream.pick((2, 3))
    which, stalls = stream.below(4), election // 2 * stream.pick((1, 2))
    groups: list[GroupId] = []

    def replaces(writes: Any) -> bool:
        groups[:] = [each.group for each in writes if each.truncate]
        return bool(groups)

    def act(node: NodeId) -> None:
        if which == 3:
            die_flushed(hand, "entries replaced", node)
            return
        world.fault("its disk stalls while it replaces entries", node)
        world.disks[node].stall(stalls)
        if which == 1:
            hand.later(election // 10, _hand_over, hand, groups[0])
        elif which == 2:
            die_in_flush(hand, "entries half replaced", node)

    world.fault("isolated, with entries of its own", leader)
    hand.cut([name for name in world.network.links if leader in name], span)
    trap = world.points.set(Trap("appended", act, fits=replaces))
    hand.later(span + 4 * election, world.points.lift, trap)


def _hand_over(hand: FaultContext, group: GroupId) -> None:
    """The group's leader, if it has one, hands over to a follower."""
    for node, life in hand.world.lives.items():
        replica = life.view.replica(group)
        if awake(life) is not None and replica is not None and replica.leads:
            others = [each for each in replica.voters if each != node]
            life.enter(hand_over, life.node, group, hand.stream.pick(others or [node]))
            return


def lose_decision(hand: FaultContext) -> None:
    """A leader decides to forget producers, and nobody hears of it: it is cut off at that write,
    until another one leads. Then it leads again."""
    world = hand.world
    groups: list[GroupId] = []

    def cut(node: NodeId) -> None:
        replica = world.lives[node].view.replica(groups[0])
        if replica is not None and replica.leads:
            lead_again(hand, (node, replica), cut=True)

    trap = world.points.set(Trap("appended", cut, fits=_forgets(groups)))
    hand.later(8 * hand.span(), world.points.lift, trap)


def _forgets(groups: list[GroupId]) -> Callable[[Any], bool]:
    """Fits a decision to forget producers; `groups` has its group then."""

    def fits(writes: Any) -> bool:
        groups[:] = [
            each.group
            for each in writes
            if each.group != CONTROLLER_GROUP
            and any(
                entry.kind is EntryKind.COMMAND and _EXPIRE in entry.payload
                for entry in each.entries
            )
        ]
        return bool(groups)

    return fits


_EXPIRE = b"expire"
"""What the command in a partition's log begins with (`ottla.broker.partition.commands`)."""
