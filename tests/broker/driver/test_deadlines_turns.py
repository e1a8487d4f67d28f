"""A replica is told what beats vouched for before it judges its own deadlines.

Expectations from `raft/core.py` (rules for the driver, 2) and `deadlines.py`.
"""

from broker_core_ground import Lone
from broker_core_partition import batch
from broker_core_replicas import NOW
from ottla.broker.heartbeats.heartbeats import Beat, BeatItem
from ottla.broker.turn.tickets import ProduceTicket
from ottla.raft.messages import RequestVote
from ottla.raft.roles import Role

GROUP = 7
MS = 1000


def beat(sequence, base, *items):
    return Beat(2, 1, 1, sequence, 1, base, sequence == 1, items, NOW)


def test_a_turn_that_comes_before_an_overdue_look_does_not_stand_against_a_leader_that_beats():
    """It did: a request met the deadline of long ago, and the beat behind it was not asked for."""
    lone = Lone([GROUP], voters=(2, 1, 3))
    runner, ground = lone.runner, lone.ground
    runner.on_beat(beat(1, 0, BeatItem(GROUP, 1, 0, True)))
    ground.run()
    runner.on_beat(beat(2, 1))
    ground.run()
    replica = lone.hosted_replicas[0].replica
    assert (replica.soft.role, replica.soft.leader) == (Role.FOLLOWER, 2)
    ground.now_is = NOW + 480 * MS
    runner.on_beat(beat(3, 1))
    ground.now_is = NOW + 500 * MS
    runner.submit(
        lone.hosted_replicas[0], ProduceTicket(batch(), 1, lambda _: None, NOW + 5000 * MS)
    )
    ground.run()
    assert not [each for each in ground.sent if isinstance(each, RequestVote)]
    assert replica.soft.leader == 2
    ground.now_is = NOW + 980 * MS
    runner.submit(
        lone.hosted_replicas[0], ProduceTicket(batch(), 1, lambda _: None, NOW + 5000 * MS)
    )
    ground.run()
    assert [each.pre for each in ground.sent if isinstance(each, RequestVote)] == [True, True]


def test_a_beat_of_long_ago_does_not_end_a_candidacy():
    """Seed 10 of M16, and its clean twin: two followers of a dead leader stood for election, each
    beat of the other had their places looked at, the last beat of the dead one was told again, and
    both followed it once more before a vote could come back. Nobody ever led."""
    lone = Lone([GROUP], voters=(2, 1, 3))
    runner, ground = lone.runner, lone.ground
    runner.on_beat(beat(1, 0, BeatItem(GROUP, 1, 0, True)))
    ground.run()
    runner.on_beat(beat(2, 1))
    ground.run()
    replica = lone.hosted_replicas[0].replica
    ground.now_is = NOW + 1100 * MS
    runner.submit(
        lone.hosted_replicas[0], ProduceTicket(batch(), 1, lambda _: None, NOW + 5000 * MS)
    )
    ground.run()
    assert replica.soft.role is Role.PRE_CANDIDATE
    ground.now_is = NOW + 1160 * MS
    lone.look()
    ground.run()
    assert replica.core.role is Role.PRE_CANDIDATE
    assert len([each for each in ground.sent if isinstance(each, RequestVote)]) == 2, "one round"
