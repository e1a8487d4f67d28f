"""Beats and acks that are lost, late, doubled or of a former life: one test or more per danger.

The dangers are the first rows of the table that opens `ottla.broker.heartbeats.heartbeats`; each
test carries the messages of two nodes by hand, node 1 leads and node 2 follows.
"""

import pytest

from broker_beat_pair import TERM_0, always, book, exchange, following_pair, one_beat, unasked
from ottla.broker.heartbeats.heartbeats import SEND_FULL, BeatItem
from ottla.raft.messages import Heartbeat


@pytest.fixture
def pair():
    return following_pair()


def test_a_lost_beat_is_made_up_for_by_the_next(pair):
    leader, follower = pair
    leader.leading(8, 2, (2,), 0)
    lost = one_beat(leader, 50)
    beat, _ack, heartbeats = exchange(leader, follower, 100)
    assert beat.items == lost.items == (BeatItem(8, 2, 0, True),)
    assert heartbeats == [Heartbeat(8, 1, 2, 2, 0)]
    assert exchange(leader, follower, 150)[0].items == ()


def test_a_lost_ack_makes_the_items_come_again_but_not_the_heartbeats(pair):
    leader, follower = pair
    leader.leading(8, 2, (2,), 0)
    follower.on_beat(one_beat(leader, 50), 50, always(0))
    beat, _ack, heartbeats = exchange(leader, follower, 100, unasked)
    assert (len(beat.items), heartbeats) == (1, [])


def test_a_duplicate_beat_vouches_for_nothing_new(pair):
    leader, follower = pair
    beat = exchange(leader, follower, 50)[0]
    follower.on_beat(beat, 900, unasked)
    assert follower.vouched(7) == (1, 3, 50)
    assert not follower.alive(1, 900, 100)


def test_a_late_beat_does_not_bring_back_a_withdrawn_claim(pair):
    leader, follower = pair
    late = one_beat(leader, 50)
    leader.not_leading(7)
    exchange(leader, follower, 100)
    follower.on_beat(late, 101, unasked)
    assert follower.vouched(7) is None
    assert follower.leader_of(7) is None


def test_a_late_ack_counts_for_nothing(pair):
    leader, follower = pair
    early = follower.on_beat(one_beat(leader, 50), 50, unasked)[0]
    exchange(leader, follower, 100)
    leader.on_ack(early, 101)
    assert leader.replies_vouched(7) == [(2, 100)]


def test_an_ack_counts_as_of_when_its_beat_was_sent(pair):
    leader, follower = pair
    ack = follower.on_beat(one_beat(leader, 50), 60, unasked)[0]
    leader.on_ack(ack, 5000)
    assert leader.replies_vouched(7) == [(2, 50)]
    assert leader.alive(2, 5000, 0)


def test_an_ack_of_a_beat_never_sent_is_ignored(pair):
    leader, follower = pair
    ack = exchange(leader, follower, 50)[1]
    ack.sequence, ack.sent_at = 99, 77
    assert leader.on_ack(ack, 60) == []
    assert leader.replies_vouched(7) == [(2, 50)]


@pytest.mark.parametrize("generation", [0, 99])
def test_an_ack_of_an_impossible_generation_makes_the_sender_start_over(pair, generation):
    leader, follower = pair
    ack = follower.on_beat(one_beat(leader, 50), 50, unasked)[0]
    ack.generation = generation
    leader.on_ack(ack, 51)
    assert leader.replies_vouched(7) == [(2, 0)]
    assert one_beat(leader, 52).full


def test_an_ack_settles_only_what_its_generation_holds(pair):
    leader, follower = pair
    ack = follower.on_beat(one_beat(leader, 50), 50, unasked)[0]
    leader.leading(8, 2, (2,), 0)
    one_beat(leader, 100)
    leader.on_ack(ack, 101)
    assert leader.replies_vouched(8) == []
    assert exchange(leader, follower, 150)[2] == [Heartbeat(8, 1, 2, 2, 0)]


def test_a_restarted_sender_claims_nothing_of_its_former_life(pair):
    leader, follower = pair
    reborn = book(1, incarnation=2, now=60)
    exchange(reborn, follower, 60)
    assert follower.vouched(7) is None
    ack, heartbeats = follower.on_beat(one_beat(leader, 61), 61, unasked)
    assert (ack.generation, heartbeats) == (SEND_FULL, [])
    assert follower.leader_of(7) is None
    assert reborn.on_ack(ack, 62) == []


def test_an_ack_for_a_former_life_is_ignored(pair):
    leader, follower = pair
    ack = follower.on_beat(one_beat(leader, 50), 50, unasked)[0]
    reborn = book(1, incarnation=2, now=60)
    reborn.leading(7, 4, (2,), 0)
    while one_beat(reborn, reborn.deadline()).sequence < ack.sequence:
        pass
    reborn.on_ack(ack, 500)
    assert reborn.replies_vouched(7) == []
    assert not reborn.alive(2, 500, 1000)


def test_a_late_beat_of_a_former_life_is_not_taken_for_one_of_this(pair):
    leader, follower = pair
    late = one_beat(leader, 50)
    reborn = book(1, incarnation=2, now=60)
    reborn.leading(8, 4, (2,), 0)
    exchange(reborn, follower, 60)
    follower.on_beat(late, 900, unasked)
    assert follower.vouched(8) == (1, 4, 60)
    assert follower.leader_of(7) is None


def test_a_restarted_receiver_asks_for_all_claims_and_gets_them_at_once(pair):
    leader, _follower = pair
    leader.leading(8, 2, (2,), 0)
    reborn = book(2, incarnation=2, now=60)
    ack, heartbeats = reborn.on_beat(one_beat(leader, 60), 60, unasked)
    assert (ack.generation, heartbeats) == (SEND_FULL, [])
    assert reborn.vouched(7) is None
    leader.on_ack(ack, 61)
    assert leader.deadline() == 0
    beat, _ack, heartbeats = exchange(leader, reborn, 62)
    assert beat.full
    assert [each.group for each in heartbeats] == [7, 8]
    assert leader.replies_vouched(8) == [(2, 62)]


def test_a_beat_of_a_restarted_peer_is_answered_by_all_claims(pair):
    leader, _follower = pair
    reborn = book(2, incarnation=2, now=55)
    exchange(book(2, incarnation=1), leader, 54)
    exchange(reborn, leader, 55)
    beat = one_beat(leader, 56)
    assert (beat.full, beat.items) == (True, (BeatItem(7, 3, 0, True),))


def test_a_full_beat_withdraws_what_it_does_not_name():
    leader, follower = book(1), book(2)
    leader.leading(7, 3, (2,), 0)
    leader.leading(8, 2, (2,), 0)
    follower.on_beat(one_beat(leader, 0), 0, TERM_0)
    leader.not_leading(7)
    beat = exchange(leader, follower, 50, unasked)[0]
    assert (beat.full, beat.items) == (True, (BeatItem(8, 2, 0, True),))
    assert (follower.leader_of(7), follower.leader_of(8)) == (None, (1, 2))


def test_an_ack_of_a_stranger_is_ignored(pair):
    leader, follower = pair
    ack = follower.on_beat(one_beat(leader, 50), 50, unasked)[0]
    ack.sender = 42
    assert leader.on_ack(ack, 51) == []
    assert leader.replies_vouched(7) == [(2, 0)]
