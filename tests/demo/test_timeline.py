"""Who led when, from events alone: failovers, hand-overs, interruptions."""

from ottla.broker.cluster.events import ClusterEvent
from ottla.demo.timeline import timeline

END = 1_000


def role(at, kind, node, term, *, partition=0, topic="t"):
    return ClusterEvent(at, kind, node, topic, partition, term)


def done(at, kind, node):
    return ClusterEvent(at, kind, node)


def test_a_killed_leader_is_followed_by_a_failover():
    line = timeline(
        [role(10, "leader", 1, 1), done(100, "kill", 1), role(160, "leader", 2, 2)], "t", 0, END
    )
    (change,) = line.changes
    assert (change.cause, change.old, change.new, change.term) == ("kill", 1, 2, 2)
    assert change.failover
    assert change.micros == 60
    assert [(each.node, each.start, each.end) for each in line.reigns] == [
        (1, 10, 100),
        (2, 160, END),
    ]


def test_time_without_a_leader_begins_with_the_fault_though_the_old_one_believes_it_leads():
    events = [
        role(10, "leader", 1, 1),
        done(100, "isolate", 1),
        role(300, "leader", 2, 2),
        role(400, "follower", 1, 1),
    ]
    (change,) = timeline(events, "t", 0, END).changes
    assert (change.cause, change.micros) == ("isolate", 200)


def test_a_hand_over_is_no_failover():
    events = [role(10, "leader", 1, 1), role(50, "follower", 1, 2), role(51, "leader", 2, 2)]
    (change,) = timeline(events, "t", 0, END).changes
    assert not change.failover
    assert change.micros == 1


def test_a_leader_that_resumes_in_time_goes_on_leading():
    events = [role(10, "leader", 1, 1), done(100, "pause", 1), done(150, "resume", 1)]
    line = timeline(events, "t", 0, END)
    assert line.changes == []
    assert [(each.start, each.end) for each in line.reigns] == [(10, 100), (150, END)]


def test_faults_of_others_and_roles_elsewhere_change_nothing():
    events = [
        role(10, "leader", 1, 1),
        done(20, "kill", 2),
        role(30, "leader", 3, 5, partition=1),
        role(40, "leader", 3, 5, topic="u"),
        role(50, "truncated", 1, 1),
        role(60, "leader", 2, 1),
        role(70, "follower", 3, 1),
    ]
    line = timeline(events, "t", 0, END)
    assert line.changes == []
    assert [(each.node, each.end) for each in line.reigns] == [(1, END)]


def test_what_comes_after_the_end_is_not_looked_at():
    events = [role(10, "leader", 1, 1), done(END + 1, "kill", 1)]
    assert timeline(events, "t", 0, END).reigns[-1].end == END
