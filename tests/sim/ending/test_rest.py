"""After a rest each leader hands over, and a follower falls out of sync: both must be seen to work.

Planted bugs survived plain seeds because of that: transfers that never came about under load (P205,
P210), and a follower that was counted again while it was dead (P226).
"""

from __future__ import annotations

import pytest

from ottla.broker.partition.in_sync import InSync
from ottla.raft.core import RaftCore
from ottla.sim.chance.choices import Tape
from ottla.sim.ending.rest import hand_over_each, lose_a_follower
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.judge import judged_at_the_end
from ottla.sim.settings.settings import RunConfig
from sim_begun import begun

CONFIG = RunConfig(producers=1, consumers=0, records=0, replica_lag_ms=1_000, min_insync=2)
SECOND = Tape({"rest": {0: 1}})
"""The second of the followers is picked."""


def rested(config=CONFIG):
    """A world, its clients, and what waits until they have their answers."""
    world, clients = begun(config, SECOND)

    def answered():
        world.until(clients.idle, 20_000_000, "answers")

    return world, clients, answered


def test_each_leader_hands_over_while_a_record_is_on_its_way():
    world, clients, answered = rested()
    before = world.leader(0).node_id
    assert hand_over_each(world, clients, answered) == []
    assert world.leader(0).node_id not in {None, before}
    assert [row.kind for row in world.history.rows if row.kind == "ok"] == ["ok"]


def test_a_transfer_that_never_comes_about_is_told(monkeypatch):
    monkeypatch.setattr(RaftCore, "transfer", lambda *_: False)
    world, clients, answered = rested()
    before = world.leader(0).node_id
    (told,) = hand_over_each(world, clients, answered)
    assert told.startswith(f"partition 0 from node {before} to node ")


@pytest.mark.parametrize("counted", [False, True])
def test_who_died_while_nothing_was_written_is_not_counted(monkeypatch, counted):
    """A leader that counts it all the same is noticed, though enough others are in sync."""
    if counted:
        monkeypatch.setattr(InSync, "in_sync", lambda self, _: self._voters)
    world, clients, answered = rested()
    lose_a_follower(world, clients, answered)
    told = [row.code for row in world.history.rows if row.kind == "crash"]
    assert set(told) == {"out of sync while nothing is written"}
    found = {each.invariant for each in judged_at_the_end(Index(world.history.rows))}
    assert ("sim-I43" in found) == counted
