"""However many replicas have something to do, a turn of the event loop stays short.

All 3,000 replicas of 1,000 partitions stood for election in the same turn after a restart of their
cluster: 552 ms. A batch for each of the partitions at once took 566 ms, in which nobody was served.
"""

import pytest

from broker_core_ground import Lone
from broker_core_replicas import NOW
from ottla.broker.driver.deadlines import MOST_LOOKS
from ottla.broker.event_loop.scheduler import MOST_TURNS
from ottla.broker.heartbeats.heartbeats import Beat, BeatAck, BeatItem, Heartbeats
from ottla.broker.turn.watcher import Watcher

MS = 1000
GROUPS = range(1, 3 * MOST_LOOKS + 1)
TERM = 1


def beat(sequence, items=(), *, full=False):
    return Beat(2, 1, 1, sequence, 1, 0 if full else 1, full, items, NOW)


@pytest.fixture
def lone():
    """A follower in many groups, all of which node 2 leads and vouches for."""
    made = Lone(GROUPS, voters=(2, 1, 3))
    items = [BeatItem(group, TERM, 0, True) for group in GROUPS]
    made.runner.on_beat(beat(1, items, full=True))
    return made


def turns_by_step(lone):
    """Turns of replicas in each turn of the loop, until nothing is left to do."""
    counts = []
    before = lone.runner.turns
    while lone.ground.step():
        counts.append(lone.runner.turns - before)
        before = lone.runner.turns
    return counts


def test_a_turn_of_the_loop_sees_so_many_replicas_and_the_next_ones_the_others(lone):
    counts = turns_by_step(lone)
    assert max(counts) == MOST_TURNS
    assert sum(counts) == len(GROUPS)
    assert {hosted.replica.leadership for hosted in lone.hosted_replicas} == {(2, TERM)}


@pytest.mark.slow
def test_what_replicas_have_to_do_is_done_in_the_order_in_which_it_came(lone):
    led: list[int] = []
    lone.runner.watch(Watcher(role_changed=led.append))
    turns_by_step(lone)
    assert led == list(GROUPS)


@pytest.mark.slow
def test_replicas_whose_leader_falls_silent_are_looked_at_in_several_turns_of_the_loop(lone):
    turns_by_step(lone)
    lone.runner.on_beat(beat(2))
    lone.ground.now_is = NOW + 400 * MS
    lone.runner.on_beat(beat(3))
    lone.ground.ring()
    looks: list[int] = []
    vouched = lone.beats.vouched

    def asked(group):
        looks.append(group)
        return vouched(group)

    lone.beats.vouched = asked
    lone.ground.now_is = NOW + 2000 * MS
    counts = []
    while len(set(looks)) < len(GROUPS):
        before = len(looks)
        lone.look()
        counts.append(len(looks) - before)
        assert counts[-1], f"looked at {len(looks)}, and at no more"
    assert max(counts) <= 2 * 2 * MOST_LOOKS  # what is due, and who trusted; a look asks twice
    assert len(counts) > 1


@pytest.mark.slow
def test_a_paused_node_goes_on_with_those_that_were_put_off(lone):
    lone.ground.step()
    lone.runner.pause()
    assert not sum(turns_by_step(lone))
    lone.runner.resume()
    assert sum(turns_by_step(lone)) == len(GROUPS) - MOST_TURNS


@pytest.mark.slow
def test_a_large_beat_that_comes_again_is_no_reason_to_look(lone):
    turns_by_step(lone)
    looks: list[int] = []
    lone.beats.vouched = looks.append
    items = [BeatItem(group, TERM, 0, True) for group in GROUPS]
    lone.runner.on_beat(beat(2, items, full=True))
    assert not looks


def test_groups_that_an_acknowledgement_names_again_are_no_news():
    """While a node comes back it follows in none of its groups yet, and each of its answers names
    them all: their leader looked at all of them each time. It looks at a group when a refusal of it
    begins, and when it ends."""
    book = Heartbeats(1, (2, 3), 50 * MS, incarnation=1, now=NOW)
    for group in GROUPS:
        book.leading(group, TERM, (2, 3), 0)
    news = []
    for sequence, refused in enumerate([GROUPS, GROUPS, GROUPS[5:], GROUPS[:7], ()], 1):
        book.due(NOW + sequence * 50 * MS)
        higher = tuple((group, 0) for group in refused)
        book.on_ack(BeatAck(2, 1, 1, sequence, 1, NOW, higher), NOW + sequence * 50 * MS)
        news.append(set(book.changed))
        book.changed = {}
    ended, began = set(GROUPS[7:]), set(GROUPS[:5])
    assert news == [set(GROUPS), set(), began, began | ended, set(GROUPS[:7])]
