"""How a node ends, cleanly or not: every ticket is answered once, and the other nodes go on.

Expectations from `commands.py` (`on_done` is called exactly once) and promise-K4 (what was called
done is done).
"""

from __future__ import annotations

from typing import Any, Never

import pytest

from broker_core_ground import Ground, Lone
from broker_core_partition import batch
from broker_core_replicas import NOW
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.scheduler import Scheduler
from ottla.broker.partition.partition import Partition
from ottla.broker.turn.tickets import ProduceTicket
from ottla.idempotency.mutex import ProducerMutex
from ottla.log.errors import StoreError
from ottla.raft.core import RaftCore

ELSEWHERE = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Rig(Lone):
    """Two groups of one, which lead and serve; `answers` in the order given."""

    def __init__(self):
        super().__init__((7, 8))
        self.answers = []
        machines = [each.replica.machine for each in self.hosted_replicas]
        assert all(isinstance(each, Partition) and each.leadership.synced for each in machines)

    def produce(self, hosted, sequence=0, *, acks=-1):
        """One batch of producer 7 into the inbox of that hosted."""
        ticket = ProduceTicket(batch(7, sequence), acks, self.answers.append, NOW + 1_000_000)
        self.runner.submit(self.hosted_replicas[hosted], ticket)
        return ticket

    def errors(self):
        """What was answered, in order."""
        return [each.error for each in self.answers]


@pytest.fixture
def rig():
    return Rig()


def breaks(*_: object) -> Never:
    """In place of a method whose invariant does not hold."""
    raise AssertionError("7 is not 8")


class BrokenMutex(ProducerMutex[Any]):
    """It breaks whoever needs it."""

    def acquire(self, *_: object) -> bool:
        """Nobody gets it."""
        return breaks()


def test_who_submits_to_a_node_that_has_stopped_is_answered(rig):
    """It went into an inbox that no turn would ever empty."""
    rig.runner.close()
    ticket = rig.produce(0)
    rig.ground.run()
    assert rig.answers == [ticket]
    assert ticket.error is ELSEWHERE


def test_who_still_waits_in_an_inbox_when_a_turn_breaks_is_answered(rig):
    """Tickets behind the one that broke the turn were lost with it."""
    first = rig.produce(0)
    rig.hosted_replicas[0].replica.machine.admission.mutex = BrokenMutex()
    second, other = rig.produce(0, 1), rig.produce(1)
    rig.ground.run()
    assert [type(each) for each in rig.failures] == [AssertionError]
    assert sorted(map(id, rig.answers)) == sorted(map(id, (first, second, other)))
    assert rig.errors() == [ELSEWHERE] * 3


def test_what_other_turns_of_a_broken_pump_have_to_say_is_said_once_and_not_as_done(rig):
    """Their answers were lost: decided, and never given."""
    quick = rig.produce(0, acks=1)
    rig.hosted_replicas[1].replica.machine.admission.mutex = BrokenMutex()
    broken = rig.produce(1)
    rig.ground.run()
    assert rig.answers == [quick, broken]
    assert rig.errors() == [ErrorCode.KAFKA_STORAGE_ERROR, ELSEWHERE]
    assert rig.store.read(7, 3, 3, 1000) == [], "nothing of that pump was appended"


@pytest.mark.parametrize("acks", [1, -1])
def test_a_store_that_refuses_an_append_leaves_no_answer_out_and_none_good(rig, monkeypatch, acks):
    def full(_):
        raise StoreError("the disk is full")

    monkeypatch.setattr(rig.runner, "write", full)
    tickets = [rig.produce(0, acks=acks), rig.produce(1, acks=acks)]
    rig.ground.run()
    assert sorted(map(id, rig.answers)) == sorted(map(id, tickets))
    assert ErrorCode.NONE not in rig.errors()
    assert [type(each) for each in rig.failures] == [StoreError]


def test_a_turn_that_breaks_when_its_sync_ends_breaks_the_node(rig, monkeypatch):
    """It was a callback's exception: the node went on, and said nothing of it any more."""
    rig.disk.defer_syncs = True
    ticket = rig.produce(0)
    rig.ground.run()
    monkeypatch.setattr(RaftCore, "persisted", breaks)
    (work, ended), *_ = rig.ground.works
    work()
    ended(None)
    assert rig.answers == [ticket]
    assert [type(each) for each in rig.failures] == [AssertionError]


def test_a_node_that_breaks_while_it_breaks_leaves_the_others_their_turns(caplog):
    """The scheduler died of it, and with it every node of the process."""

    class Node:
        pumped = 0

        def pump(self):
            self.pumped += 1

        def broken(self, error):
            raise error

    class Broken(Node):
        def pump(self):
            raise AssertionError("7 is not 8")

    ground, node = Ground(), Node()
    scheduler = Scheduler(ground)
    scheduler.mark(Broken())
    scheduler.mark(node)
    ground.run()
    scheduler.mark(node)
    ground.run()
    assert node.pumped == 2
    assert "did not stop cleanly" in caplog.text


def test_the_end_of_a_node_is_no_step_down(rig):
    machine = rig.hosted_replicas[0].replica.machine
    assert machine.settings.counters.leaderships == 2
    rig.runner.close()
    assert machine.settings.counters.step_downs == 0
