"""What beats say and what is made of it: claims, Heartbeats, higher terms, commits, cost.

Two or three nodes, every beat and ack carried by hand; node 1 leads and node 2 follows unless a
test says otherwise. `unasked` stands for cores that an idle beat must not look at. What happens to
beats on their way is in `test_beats_delivery.py`.
"""

import pytest

from broker_beat_pair import always, book, exchange, following_pair, one_beat, unasked
from broker_calls import calls_of
from ottla.broker.heartbeats.heartbeats import NO_REPLICA, Beat, BeatItem
from ottla.raft.messages import Heartbeat, HeartbeatReply


@pytest.fixture
def pair():
    return following_pair()


def test_the_first_beat_is_due_at_once_and_names_all_claims():
    leader, follower = book(1, now=400), book(2)
    leader.leading(7, 3, (2,), 5)
    assert leader.deadline() == 400
    beat, ack, heartbeats = exchange(leader, follower, 400)
    assert beat == Beat(1, 2, 1, 1, 1, 0, True, (BeatItem(7, 3, 0, True),), 400)
    assert (ack.generation, ack.sent_at, ack.higher_terms) == (1, 400, ())
    assert heartbeats == [Heartbeat(7, 1, 2, 3, 0)]
    assert leader.deadline() == 450


def test_an_idle_beat_names_nothing_and_vouches_for_everything(pair):
    leader, follower = pair
    beat, _ack, heartbeats = exchange(leader, follower, 50, unasked)
    assert (beat.items, beat.full, heartbeats) == ((), False, [])
    assert follower.vouched(7) == (1, 3, 50)
    assert leader.replies_vouched(7) == [(2, 50)]


def test_nothing_is_sent_before_the_interval_is_over(pair):
    leader, _follower = pair
    leader.committed(7, 1)
    assert leader.due(49) == []
    assert len(leader.due(50)) == 1


def test_urgent_sends_news_at_once_and_only_to_those_it_concerns():
    leader, follower = book(1, peers=(1, 2, 3)), book(2)
    leader.leading(7, 3, (2,), 0)
    other = book(3)
    for beat in leader.due(0):
        receiver = follower if beat.to == 2 else other
        leader.on_ack(receiver.on_beat(beat, 0, always(None if beat.to == 3 else 0))[0], 0)
    leader.committed(7, 4, {2: 4}.__getitem__)
    leader.urgent(7)
    assert leader.deadline() == 0
    (beat,) = leader.due(10)
    assert (beat.to, beat.items) == (2, (BeatItem(7, 3, 4, True),))
    assert leader.deadline() == 50


def test_urgent_without_news_sends_nothing(pair):
    leader, _follower = pair
    leader.urgent(7)
    assert leader.due(10) == []
    assert leader.deadline() == 50


def test_a_withdrawn_claim_is_told_until_acknowledged(pair):
    leader, follower = pair
    leader.not_leading(7)
    lost = one_beat(leader, 50)
    assert lost.items == (BeatItem(7, 3, 0, False),)
    assert exchange(leader, follower, 100)[0].items == lost.items
    assert exchange(leader, follower, 150)[0].items == ()
    assert follower.leader_of(7) is None


def test_of_two_claims_the_higher_term_is_believed_whatever_comes_last():
    old, new, node = book(1, peers=(3,)), book(2, peers=(3,)), book(3)
    old.leading(7, 3, (3,), 0)
    new.leading(7, 4, (3,), 0)
    exchange(new, node, 1, always(4))
    node.on_beat(one_beat(old, 2), 2, always(4))
    assert node.leader_of(7) == (2, 4)
    assert node.vouched(7) == (2, 4, 1)
    new.not_leading(7)
    exchange(new, node, 60, always(4))
    old.committed(7, 9, lambda _node: 9)
    node.on_beat(one_beat(old, 61), 61, always(4))
    assert node.leader_of(7) is None


def test_a_node_knows_that_it_leads_itself(pair):
    leader, follower = pair
    assert leader.leader_of(7) == (1, 3)
    assert leader.vouched(7) is None
    follower.leading(7, 4, (1,), 0)
    assert follower.leader_of(7) == (2, 4)
    assert follower.vouched(7) is None
    follower.not_leading(7)
    assert follower.leader_of(7) is None


def test_one_group_with_a_higher_term_is_named_until_its_leader_resigns(pair):
    leader, follower = pair
    leader.leading(8, 2, (2,), 0)
    exchange(leader, follower, 50)
    follower.term_moved(7)
    terms = {7: 9, 8: 2}
    for now in (100, 150):
        ack, heartbeats = follower.on_beat(one_beat(leader, now), now, terms.get)
        assert (ack.higher_terms, heartbeats) == (((7, 9),), [])
        assert leader.on_ack(ack, now) == [HeartbeatReply(7, 2, 1, 9)]
        assert leader.replies_vouched(7) == []
        assert leader.replies_vouched(8) == [(2, now)]
    leader.not_leading(7)
    assert exchange(leader, follower, 200)[1].higher_terms == ()


def test_a_leader_of_the_higher_term_is_followed_again(pair):
    leader, follower = pair
    follower.term_moved(7)
    leader.on_ack(follower.on_beat(one_beat(leader, 50), 50, always(9))[0], 50)
    leader.leading(7, 10, (2,), 0)
    _beat, ack, heartbeats = exchange(leader, follower, 100, always(9))
    assert (ack.higher_terms, heartbeats) == ((), [Heartbeat(7, 1, 2, 10, 0)])
    assert leader.replies_vouched(7) == [(2, 100)]


def test_a_new_term_is_not_vouched_for_by_acks_of_the_old_one(pair):
    leader, follower = pair
    under_way = follower.on_beat(one_beat(leader, 50), 50, unasked)[0]
    leader.leading(7, 4, (2,), 0)
    leader.on_ack(under_way, 51)
    assert leader.replies_vouched(7) == []
    exchange(leader, follower, 100)
    assert leader.replies_vouched(7) == [(2, 100)]


def test_a_voter_without_a_replica_does_not_vouch_until_it_has_one():
    leader, follower = book(1), book(2)
    leader.leading(7, 3, (2,), 0)
    _beat, ack, heartbeats = exchange(leader, follower, 0, always(None))
    assert (ack.higher_terms, heartbeats) == (((7, 0),), [])
    assert leader.replies_vouched(7) == []
    follower.term_moved(7)
    assert exchange(leader, follower, 50, always(0))[2] == [Heartbeat(7, 1, 2, 3, 0)]
    assert leader.replies_vouched(7) == [(2, 50)]


def test_a_group_is_looked_at_when_a_refusal_begins_and_when_it_ends():
    # Simulated run 208026: a follower came back, the leader's idle replica was not looked at, so
    # its in-sync view was old, and a request was refused with NOT_ENOUGH_REPLICAS without reason.
    leader, follower = book(1), book(2)
    leader.leading(7, 3, (2,), 0)
    exchange(leader, follower, 0, always(None))
    assert list(leader.take_changed()) == [7]
    exchange(leader, follower, 50, always(None))
    assert list(leader.take_changed()) == []
    follower.term_moved(7)
    exchange(leader, follower, 100, always(0))
    assert list(leader.take_changed()) == [7]
    exchange(leader, follower, 150, always(0))
    assert list(leader.take_changed()) == []


def test_a_node_that_is_no_voter_learns_who_leads_and_nothing_else():
    leader, other = book(1, peers=(2, 3)), book(3)
    leader.leading(7, 3, (2,), 0)
    beat = next(beat for beat in leader.due(0) if beat.to == 3)
    ack, heartbeats = other.on_beat(beat, 0, always(None))
    assert beat.items == (BeatItem(7, 3, NO_REPLICA, True),)
    assert (ack.higher_terms, heartbeats) == ((), [])
    assert other.leader_of(7) == (1, 3)
    leader.on_ack(ack, 0)
    assert leader.replies_vouched(7) == []
    leader.committed(7, 10, lambda _node: 10)
    assert next(beat for beat in leader.due(50) if beat.to == 3).items == ()


def test_a_follower_that_is_behind_is_told_of_the_commit_as_it_catches_up(pair):
    leader, follower = pair
    held = {2: 4}
    leader.committed(7, 9, held.__getitem__)
    assert exchange(leader, follower, 50)[2] == [Heartbeat(7, 1, 2, 3, 4)]
    assert exchange(leader, follower, 100)[2] == []
    held[2] = 9
    assert exchange(leader, follower, 150)[2] == [Heartbeat(7, 1, 2, 3, 9)]
    assert exchange(leader, follower, 200)[0].items == ()


def test_what_is_held_is_not_asked_while_the_follower_is_silent(pair):
    leader, _follower = pair
    asked = []

    def known_to(node):
        asked.append(node)
        return 4

    leader.committed(7, 9, known_to)
    for now in range(50, 500, 50):
        leader.due(now)
    assert len(asked) <= 2


def test_a_commit_of_a_group_not_led_changes_nothing(pair):
    leader, follower = pair
    leader.committed(99, 5)
    assert exchange(leader, follower, 50)[0].items == ()


def test_a_forgotten_group_is_neither_claimed_nor_believed(pair):
    leader, follower = pair
    follower.forget(7)
    assert follower.leader_of(7) is None
    assert exchange(leader, follower, 50, always(None))[1].higher_terms == ((7, 0),)
    leader.forget(7)
    assert leader.leader_of(7) is None
    assert exchange(leader, follower, 100, unasked)[1].higher_terms == ()


def test_alive_is_who_was_heard_of_within_the_span(pair):
    leader, follower = pair
    assert leader.alive(1, 10**9, 0)
    assert follower.alive(1, 30, 30)
    assert not follower.alive(1, 31, 30)
    assert not follower.alive(3, 0, 30)


def test_the_answer_to_an_idle_beat_goes_with_the_next_beat_and_news_goes_at_once():
    leader, follower = book(1, acks_ride=True), book(2, acks_ride=True)
    leader.leading(7, 3, (2,), 0)
    news, ack, _ = exchange(leader, follower, 0)
    assert not follower.rides(news, ack)
    idle = one_beat(leader, 50)
    ack, _ = follower.on_beat(idle, 51, unasked)
    assert follower.rides(idle, ack)
    assert one_beat(follower, 60).ack == ack
    assert one_beat(follower, 110).ack is None
    leader.on_ack(ack, 61)
    assert leader.replies_vouched(7) == [(2, 50)]


def test_no_answer_waits_that_refuses_or_cannot_follow():
    leader, ahead = book(1), book(2, acks_ride=True)
    leader.leading(7, 3, (2,), 0)
    leader.on_ack(ahead.on_beat(one_beat(leader, 0), 0, always(4))[0], 1)
    idle = one_beat(leader, 50)
    ack, _ = ahead.on_beat(idle, 50, unasked)
    assert (idle.items, ack.higher_terms) == ((), ((7, 4),))
    assert not ahead.rides(idle, ack)
    reborn = book(2, incarnation=2, acks_ride=True)
    assert not reborn.rides(idle, reborn.on_beat(idle, 51, unasked)[0])


def idle_cost(groups):
    leader, follower = book(1), book(2)
    for group in range(groups):
        leader.leading(group, 1, (2,), 0)
    exchange(leader, follower, 0)
    return calls_of(lambda: exchange(leader, follower, 50, unasked))


def test_an_idle_beat_costs_the_same_for_any_number_of_groups():
    assert idle_cost(1000) == idle_cost(1)
