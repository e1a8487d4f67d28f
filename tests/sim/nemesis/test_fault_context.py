"""Faults of the nemesis overlap, and the end of one does not end another.

`FAULTS` says of each how it begins, for a span, and whether it lasts. Of two that overlap the later
end counts, whichever began first; healing ends both.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.nemesis.fault_context import FaultContext
from ottla.sim.nemesis.nemesis import named
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import SECOND, World

LINK = (1, 2)


def a_hand() -> FaultContext:
    """A hand in a world that has booted. All choices are the plain ones."""
    world = World(RunConfig(), Replayed(Tape()))
    world.boot()
    return FaultContext(world, world.choices.stream("nemesis"))


def after(hand: FaultContext, span: int) -> None:
    """Let time pass."""
    hand.world.kernel.run(hand.world.kernel.now + span)


def cut(hand: FaultContext, span: int) -> None:
    """Cut the link for a while."""
    hand.cut([LINK], span)


def clog(hand: FaultContext, span: int) -> None:
    """Clog it."""
    hand.clog(LINK, span)


def freeze(hand: FaultContext, span: int) -> None:
    """Stop node 1."""
    hand.later(span, hand.freeze(1))


def frozen(hand: FaultContext) -> bool:
    """Whether it stands still."""
    return hand.world.lives[1].frozen


def hang(hand: FaultContext, span: int) -> None:
    """Have its disk hang."""
    hand.later(span, hand.hang(1))


def stall(hand: FaultContext, span: int) -> None:
    """Have its disk stall."""
    hand.world.disks[1].stall(span)


def syncs_end(hand: FaultContext) -> bool:
    """Whether a sync of node 1 that begins now ends soon."""
    ended: list[bool] = []
    hand.world.disks[1].sync(lambda: ended.append(True))
    after(hand, SECOND // 10)
    return bool(ended)


FAULTS: dict[str, tuple[Callable[[FaultContext, int], None], Callable[[FaultContext], bool]]] = {
    "cut": (cut, lambda hand: hand.world.network.links[LINK].cut),
    "clog": (clog, lambda hand: hand.world.network.links[LINK].held is not None),
    "freeze": (freeze, frozen),
    "hang": (hang, lambda hand: not syncs_end(hand)),
    "stall": (stall, lambda hand: not syncs_end(hand)),
}


@pytest.mark.parametrize("spans", [(10, 1), (1, 10)])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_two_faults_do_ends_with_the_later_of_them(fault, spans):
    """The first that ended mended the link, let the process go on, or made a stall shorter."""
    begin, lasts = FAULTS[fault]
    hand = a_hand()
    for span in spans:
        begin(hand, span * SECOND)
    after(hand, 2 * SECOND)
    assert lasts(hand)
    after(hand, 9 * SECOND)
    assert not lasts(hand)
    begin(hand, SECOND)
    assert lasts(hand)
    after(hand, 2 * SECOND)
    assert not lasts(hand)


@pytest.mark.parametrize("fault", FAULTS)
def test_all_of_them_end_when_everything_is_healed(fault):
    begin, lasts = FAULTS[fault]
    hand = a_hand()
    begin(hand, 10 * SECOND)
    begin(hand, 20 * SECOND)
    hand.stopped = True
    hand.world.heal(hand.world.nodes)
    assert not lasts(hand)


def test_the_pause_of_a_life_is_not_that_of_the_next():
    hand = a_hand()
    freeze(hand, SECOND)
    hand.world.crash(1)
    hand.world.start(1)
    assert not frozen(hand)
    freeze(hand, 10 * SECOND)
    after(hand, 2 * SECOND)
    assert frozen(hand)
    after(hand, 9 * SECOND)
    assert not frozen(hand)


def test_a_pause_of_who_is_dead_does_not_make_one_longer():
    hand = a_hand()
    hand.world.crash(1)
    freeze(hand, 10 * SECOND)
    hand.world.start(1)
    freeze(hand, SECOND)
    after(hand, 2 * SECOND)
    assert not frozen(hand)


def test_an_end_counts_once():
    hand = a_hand()
    first, _ = hand.freeze(1), hand.freeze(1)
    first()
    first()
    assert frozen(hand)


@pytest.mark.parametrize(
    ("program", "lasts"),
    [
        ("burst", lambda hand: hand.world.network.links[LINK].loss_ppm),
        ("slow-node", lambda hand: hand.world.lives[1].clockwork.slowness > 1),
        (
            "slow-link",
            lambda hand: (
                hand.world.network.links[LINK].spans != hand.world.network.links[LINK].plain
            ),
        ),
    ],
)
def test_programs_that_overlap_do_not_end_each_other(program, lasts):
    """Each lasts a quarter of a second, the plain choice."""
    hand = a_hand()
    named(program).run(hand)
    after(hand, SECOND // 5)
    named(program).run(hand)
    after(hand, SECOND // 5)
    assert lasts(hand)
    after(hand, SECOND)
    assert not lasts(hand)
