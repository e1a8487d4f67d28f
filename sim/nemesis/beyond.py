"""Programs that no seed draws: faults that no Raft survives. A run has those that its settings
name.

The verdict explains what they cost, and is *weakened* then (`sim/invariants/beyond.py`).
"""

from __future__ import annotations

from ottla.sim.nemesis.fault_context import FaultContext
from ottla.sim.nemesis.programs import Program
from ottla.sim.settings.settings import RunConfig


def _lost_sync(hand: FaultContext) -> None:
    """A disk keeps nothing for a while, and then its machine loses its power."""
    node, span, world = hand.somebody(), hand.span(), hand.world
    world.lie(node)

    def power_off() -> None:
        world.crash(node, "a disk that lied", power=True)
        world.disks[node].lies = False

    hand.later(span, power_off)
    hand.revive(node, span + hand.span())


def _old_copy(hand: FaultContext) -> None:
    """A machine is set back to a backup of its disk."""
    node, span, world = hand.somebody(), hand.span(), hand.world
    world.fault("its disk is copied", node)
    world.disks[node].keep_copy()

    def set_back() -> None:
        world.crash(node, "to be set back")
        world.bring_back(node)

    hand.later(4 * span, set_back)
    hand.revive(node, 5 * span)


def _same_id(hand: FaultContext) -> None:
    """The next producer that asks for an id gets one that another producer has."""
    hand.world.fault("the next producer id is one that was given out before")
    hand.world.producer_ids.again += 1


BEYOND: tuple[Program, ...] = (
    Program("lost-sync", "D2", _lost_sync),
    Program("old-copy", "D6", _old_copy),
    Program("same-id", "L3", _same_id),
)


def beyond_the_budget(config: RunConfig) -> bool:
    """Whether the settings name a fault beyond the budget."""
    names = config.faults.split()
    return any(each.name in names for each in BEYOND)
