"""`lead_again`: a leader loses its leadership and has it back in no time.

What a node keeps of its last leadership, and of what was under way then, shows only if it leads
again soon: a count of replicas in sync, a decision that was lost, an acknowledgement of a follower
that was truncated since. Left to chance, the next leader is another node in most cases, or it is
the same one after a long time.
"""

from __future__ import annotations

from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.node.handover import hand_over
from ottla.raft.types import NodeId
from ottla.sim.nemesis.fault_context import MS, FaultContext
from ottla.sim.nemesis.timed_faults import Led, led, opens
from ottla.sim.world.life import Life
from ottla.sim.world.points import Trap

_OF_THE_CONTROLLER = 4
"""One time in so many it is the controller's leader."""


def lead_again(hand: FaultContext, of: Led | None = None, *, cut: bool | None = None) -> None:
    """A leader hands over to a follower, or is cut off until another one leads. The next leader
    hands back to it, at once or a little later. `of`: the leader, and its replica; one is drawn if
    none is given, and so is whether it is cut off."""
    found = of or _pick(hand)
    if found is None or len(found[1].voters) == 1:
        return
    world, stream = hand.world, hand.stream
    node, replica = found
    group, life = replica.group, world.lives[node]
    election = world.config.election_timeout_ms * MS
    if cut is None:
        cut = stream.below(2) == 1
    span = election * stream.pick((3, 4, 6)) if cut else 0
    pause = stream.pick((0, election // 50, election // 5))
    world.fault("leads again soon after another one", node)

    def hand_back(next_life: Life) -> None:
        there = world.lives.get(next_life.node_id) is next_life and not next_life.frozen
        # Its topic may be deleted by then.
        if there and next_life.view.replica(group) is not None:
            next_life.enter(hand_over, next_life.node, group, node)

    def second_wins(second: NodeId) -> None:
        if second != node and second in world.lives:
            hand.later(span + pause, hand_back, world.lives[second])

    trap = world.points.set(Trap("append", second_wins, fits=opens(group)))
    hand.later(6 * election, world.points.lift, trap)
    if cut:
        hand.cut([name for name in world.network.links if node in name], span)
    elif not life.frozen:
        others = [each for each in replica.voters if each != node]
        life.enter(hand_over, life.node, group, stream.pick(others))


def _pick(hand: FaultContext) -> Led | None:
    found = hand.world.controller()
    if found is not None and hand.stream.below(_OF_THE_CONTROLLER) == 1:
        replica = found.view.replica(CONTROLLER_GROUP)
        return None if replica is None else (found.node_id, replica)
    return led(hand)
