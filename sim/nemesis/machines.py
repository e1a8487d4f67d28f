"""Programs against whole machines: lost disks, clocks, and processes that shut down in order.

At most one node in a run loses its disk or finds it damaged. It refuses to start (sim-S35), and the
others must go on without it.
"""

from __future__ import annotations

from ottla.raft.quorum import majority
from ottla.raft.types import NodeId
from ottla.sim.nemesis.fault_context import FaultContext
from ottla.sim.world.clocks import MILLION

HOUR_MS = 3_600_000
MAX_DRIFT_PPM = 50_000
SLEWS_PPM = (500, -500, 100_000, -100_000)
"""NTP slews by the first two, and steps if slewing would take too long; some systems slew
faster."""


def stop(hand: FaultContext) -> None:
    """A node shuts down in order: everything is synced, and clients and nodes are told."""
    node = hand.somebody()
    hand.world.stop(node)
    hand.revive(node, hand.span())


def drift(hand: FaultContext) -> None:
    """A monotonic clock goes faster or slower than it should, for the rest of the run."""
    node, world = hand.node(), hand.world
    ppm = hand.stream.between(-MAX_DRIFT_PPM, MAX_DRIFT_PPM)
    world.fault(f"its clock drifts by {ppm} ppm", node)
    world.clocks[node].drift(world.kernel.now, ppm)


def upset_wall_clock(hand: FaultContext) -> None:
    """A wall clock is set to another time, or for a while goes at another rate or not at all. That
    must have no effect: `tests/sim/world/test_clocks.py` checks what no history shows."""
    world, node, stream = hand.world, hand.node(), hand.stream
    clock, now = world.clocks[node], world.kernel.now
    offset, ppm = stream.between(-HOUR_MS, HOUR_MS), stream.pick((0, -MILLION, *SLEWS_PPM))
    if not ppm:
        world.fault(f"its wall clock is off by {offset} ms", node)
        clock.step_wall(now, offset)
        return
    what = "stands" if ppm == -MILLION else f"is slewed by {ppm} ppm"
    world.fault(f"its wall clock {what}", node)
    clock.slew_wall(now, ppm)

    def as_ever() -> None:
        clock.slew_wall(world.kernel.now, 0)

    hand.later(hand.span(), hand.hold(("wall clock", node), as_ever))


def jump_clock(hand: FaultContext) -> None:
    """A monotonic clock jumps forward: a machine that slept, a timer that starved."""
    node, span = hand.node(), hand.span()
    hand.world.fault(f"its clock jumps by {span} us", node)
    hand.world.jump(node, span)


def lost_disk(hand: FaultContext) -> None:
    """A machine comes back with an empty disk."""
    node = hand.somebody()
    if _may_lose(hand, node):
        hand.world.crash(node, power=True)
        hand.world.wipe(node)
        hand.revive(node, hand.span())


def bit_rot(hand: FaultContext) -> None:
    """What was synced long ago is damaged at the next start."""
    node, world = hand.somebody(), hand.world
    if not _may_lose(hand, node):
        return
    world.crash(node)
    medium = world.disks[node].medium
    rotten = [group for group, image in sorted(medium.images.items()) if image.entries]
    if rotten and not medium.unsynced_appends:
        group = hand.stream.pick(rotten)
        image = medium.images[group]
        index = image.first_index + hand.stream.below(len(image.entries))
        world.rot(node, group, index)
    hand.revive(node, hand.span())


def _may_lose(hand: FaultContext, node: NodeId) -> bool:
    """Whether the fault budget allows it, for each Raft group: the nodes that are left must be a
    majority, and near enough to each other. With one or two replicas each disk is needed."""
    world = hand.world
    spared = world.config.replicas - 1 >= majority(world.config.replicas)
    left = [each for each in world.nodes if each != node]
    return spared and world.able == world.nodes and world.near(left)
