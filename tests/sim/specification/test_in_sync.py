"""How many replicas are in sync: what is accepted, refused, shown and held.

All clocks of a trace are one, `Traced.now`; a follower vouches for its leader by *alive*. Between
the two bounds of `in_sync.py` both answers are allowed.
"""

import pytest

from ottla.sim.specification.in_sync import Rules
from ottla.sim.specification.trace import ALL_GROUPS, Entry, Message
from sim_traces import GROUP, LAG, Traced, led, refuses

A, B = Entry(1, 11, 2), Entry(1, 12, 3)
FEW, LATE = "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"


def test_a_new_leader_counts_all_replicas():
    traced = led(A)
    traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce")
    with refuses("3 replicas are in sync, 3 are needed"):
        traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce", FEW)


def test_a_follower_that_fell_silent_does_not_count():
    traced = _silent(3)
    traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce", FEW)
    with refuses("2 replicas can be in sync, 3 are needed"):
        traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce")
    traced.answer(1, traced.ask(1, acks=-1, minimum=2), "produce")
    with refuses("2 replicas are in sync, 2 are needed"):
        traced.answer(1, traced.ask(1, acks=-1, minimum=2), "produce", LATE)


def test_a_follower_that_lives_and_lacks_an_entry_does_not_count():
    traced = led(A)
    traced.append(1, B)
    traced.copy(1, 2, 1, after=3)
    traced.commit(1, 4)
    _pass(traced, alive=(2, 3))
    with refuses("2 replicas can be in sync, 3 are needed"):
        traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce")
    traced.copy(1, 3, 1, after=3)
    traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce")


def test_between_the_bounds_both_answers_are_allowed():
    """Heard, but not within half the lag: the leader may count it or not."""
    traced = _silent(3)
    traced.now -= LAG
    for error in ("NONE", FEW):
        traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce", error)


def test_a_node_that_has_just_started_vouches_for_no_group_that_it_does_not_follow_in():
    """Seed 5000 with replica_lag_ms=1000: the leader refused, and the specification counted it."""
    for others, words in (((GROUP,), None), ((GROUP + 1,), "3 replicas are in sync")):
        traced = _silent(3)
        life = Message("alive", 3, 1, 0, context=traced.now, yes=True, span=others)
        traced.step("receive", 1, life, ALL_GROUPS)
        if words is None:
            traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce", FEW)
        else:
            with refuses(words):
                traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce", FEW)


def test_a_node_that_is_slow_is_not_judged():
    traced = _silent(3)
    traced.step("commit", 1, 3, slow=True)
    traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce")
    traced.answer(1, traced.ask(1, acks=-1, minimum=2), "produce", FEW)


def test_a_leader_that_a_follower_left_may_refuse():
    traced = led(A)
    traced.take(Message("heartbeat", 2, 1, 5))
    traced.answer(1, traced.ask(1, acks=-1, minimum=3), "produce", FEW)


@pytest.mark.parametrize("what", ["fetch", "latest"])
def test_what_too_few_replicas_have_is_held(what):
    traced = _silent(3, minimum=3)
    traced.append(1, B)
    traced.copy(1, 2, 1, after=3)
    traced.commit(1, 4)
    traced.answer(1, traced.ask(1, minimum=3), what, offset=2)
    with refuses("it shows offsets below 5, it may show those below 2"):
        traced.answer(1, traced.ask(1, minimum=3), what, offset=5)


def test_nothing_is_held_while_enough_replicas_are_in_sync():
    traced = led(A)
    with refuses("it knew all below 2 committed, and 3 replicas are in sync"):
        traced.answer(1, traced.ask(1, minimum=3), "fetch", offset=0)
    traced = led(A)
    traced.member(1).rules = Rules(LAG, waits_for_all=True)
    traced.answer(1, traced.ask(1, minimum=3), "fetch", offset=0)


def test_what_earlier_leaders_left_is_shown_at_once():
    """Decision 0014: it may have been seen before."""
    traced = led(A)
    traced.elect(2, 2, 3)
    traced.copy(2, 3, 2, after=3)
    traced.commit(2, 4)
    _pass(traced, leader=2, alive=(3,))
    traced.answer(2, traced.ask(2, minimum=3), "fetch", offset=2, last=3)


def _silent(silent: int, *, minimum: int = 1) -> Traced:
    """Node 1 leads, all hold its log, and one follower was not heard for longer than the lag."""
    traced = led(A)
    if minimum > 1:
        traced.answer(1, traced.ask(1, minimum=minimum), "fetch", offset=2)
    _pass(traced, alive=tuple({2, 3} - {silent}))
    return traced


def _pass(traced: Traced, *, alive: tuple[int, ...], leader: int = 1) -> None:
    """Twice the lag passes; these followers vouch at the end of each tenth of it."""
    for _ in range(20):
        traced.now += LAG // 10
        for peer in alive:
            life = Message("alive", peer, leader, 0, context=traced.now, yes=True)
            traced.step("receive", leader, life, ALL_GROUPS)
