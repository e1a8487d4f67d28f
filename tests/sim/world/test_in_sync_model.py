"""What the model says of replicas in sync, from what one leader wrote and was told.

Nodes, clocks and messages are handed to it one by one, so that each test says what it depends on.
The last tests ask whole runs: enough of their answers must be judged.
"""

from types import SimpleNamespace
from typing import cast

import pytest

from ottla.broker.errors import ErrorCode
from ottla.broker.heartbeats.messages import SEND_FULL, BeatAck
from ottla.broker.node.inspection import ReplicaView
from ottla.raft.messages import AppendReply
from ottla.sim.history.history import History
from ottla.sim.invariants.in_sync import counted
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.in_sync_model import Bounds, InSyncModel, in_sync_model
from ottla.sim.world.life import Life

GROUP, TERM = 7, 3
LAG = 1_000_000
CONFIG = RunConfig(min_insync=3, replica_lag_ms=LAG // 1_000)


class Leader:
    """Node 1 leads nodes 2 and 3 since time 0; its log ends at 4, and all of it is committed."""

    def __init__(self):
        self.now = 0
        self.backlog = 0
        clockwork = SimpleNamespace(now=lambda: self.now, backlog=lambda: self.backlog)
        self.life = cast(Life, SimpleNamespace(node_id=1, inc=1, clockwork=clockwork, thawed=0))
        self.history = History(lambda: self.now)
        self.model = InSyncModel(self.history, {GROUP: 0}, CONFIG)
        replica = SimpleNamespace(group=GROUP, term=TERM, voters=(1, 2, 3))
        self.model.leads(self.life, cast(ReplicaView, replica), 0)
        self.writes(4)

    def writes(self, last):
        self.model.wrote(self.life, GROUP, last)

    def acknowledged(self, node, match, term=TERM):
        self.model.heard(self.life, AppendReply(GROUP, node, 1, term, True, match))

    def follows(self, node, generation=1, higher_terms=()):
        ack = BeatAck(node, 1, 1, 1, generation, self.now - 1, higher_terms)
        self.model.heard(self.life, ack)

    def bounds(self):
        return self.model.bounds(self.life, GROUP)

    def goes_on(self, us, *nodes, **beat):
        """Time passes, with beats of these nodes."""
        for _ in range(us // 50_000):
            self.now += 50_000
            for node in nodes:
                self.follows(node, **beat)


def test_a_leadership_begins_with_everybody_in_sync():
    leader = Leader()
    leader.goes_on(800_000)
    assert leader.bounds() == Bounds(3, 3)
    leader.goes_on(600_000)
    assert leader.bounds() == Bounds(1, 1)


def test_who_holds_all_and_is_heard_stays_in_sync():
    leader = Leader()
    leader.acknowledged(2, 4)
    leader.goes_on(5_000_000, 2)
    assert leader.bounds() == Bounds(2, 2)
    leader.goes_on(700_000)
    assert leader.bounds() == Bounds(1, 2), "nobody can say whether its last beat counts still"
    leader.goes_on(500_000)
    assert leader.bounds() == Bounds(1, 1)


@pytest.mark.parametrize(
    "beat", [{"generation": SEND_FULL}, {"higher_terms": [(GROUP, TERM + 1)]}], ids=str
)
def test_a_beat_that_does_not_follow_this_leader_proves_nothing(beat):
    leader = Leader()
    leader.acknowledged(2, 4)
    leader.goes_on(3_000_000, 2, **beat)
    assert leader.bounds() == Bounds(1, 2)


def test_who_lacks_an_entry_was_in_sync_until_it_was_written():
    leader = Leader()
    for node in (2, 3):
        leader.acknowledged(node, 4)
    leader.goes_on(2_000_000, 2, 3)
    leader.writes(5)
    leader.acknowledged(2, 5)
    leader.goes_on(1_000_000, 2, 3)
    assert leader.bounds() == Bounds(2, 3)
    leader.goes_on(200_000, 2, 3)
    assert leader.bounds() == Bounds(2, 2)
    leader.acknowledged(3, 5, term=TERM - 1)
    assert leader.bounds() == Bounds(2, 2), "that is of another term"
    leader.acknowledged(3, 5)
    assert leader.bounds() == Bounds(2, 3)
    leader.goes_on(800_000, 2, 3)
    assert leader.bounds() == Bounds(3, 3)


def test_who_is_a_little_behind_all_the_time_is_in_sync():
    leader = Leader()
    for last in range(5, 40):
        leader.acknowledged(2, last - 2)
        leader.writes(last)
        leader.now += 100_000
    assert leader.bounds() == Bounds(2, 2)


def test_a_node_that_takes_too_long_for_its_turns_is_not_judged():
    leader = Leader()
    leader.goes_on(2_000_000)
    leader.backlog = LAG // 20
    assert leader.bounds() == Bounds(1, 3)
    leader.backlog = 0
    leader.goes_on(500_000)
    assert leader.bounds() == Bounds(1, 3)
    leader.goes_on(700_000)
    assert leader.bounds() == Bounds(1, 1)


def test_a_node_that_was_frozen_is_not_judged_for_a_while():
    """An acknowledgement had arrived before the freeze, and counted behind it (a false alarm)."""
    leader = Leader()
    leader.goes_on(2_000_000)
    leader.life.thawed = 1
    assert leader.bounds() == Bounds(1, 3)
    leader.goes_on(1_200_000)
    assert leader.bounds() == Bounds(1, 1)


def test_another_life_has_not_led():
    leader = Leader()
    leader.life.inc = 2
    assert leader.bounds() is None


@pytest.mark.slow
def test_runs_answer_with_too_few_in_sync_and_most_answers_can_be_judged():
    config = RunConfig(nodes=3, min_insync=3, faults="isolate", fault_every_ms=500, records=60)
    rows = [row for seed in range(4) for row in run(seed, config.with_(replica_lag_ms=1_000)).rows]
    codes = {row.code for row in rows if row.kind == "insync"}
    assert {ErrorCode.NONE.name, ErrorCode.NOT_ENOUGH_REPLICAS.name} <= codes
    found = counted(rows)
    assert 2 * found.unjudged < found.answers


def test_where_one_replica_is_enough_there_is_no_model():
    assert in_sync_model(History(lambda: 0), {}, RunConfig(min_insync=1)) is None
    assert in_sync_model(History(lambda: 0), {}, RunConfig(min_insync=2)) is not None
