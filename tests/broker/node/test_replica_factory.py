"""What a node makes of a group that its store knows: a replica of the same voters, always.

The first entry of a log says who they are. It is written when a replica is opened for the first
time, and may be torn by a loss of power before it was ever synced.
"""

import pytest

from broker_core_replicas import FirstJitter
from ottla.broker.config import ClusterConfig
from ottla.broker.counters import Counters
from ottla.broker.event_loop.collecting import may_age
from ottla.broker.images import TopicImage
from ottla.broker.node.replica_factory import ReplicaFactory
from ottla.log.memory_disk import MemoryDisk
from ottla.log.memory_store import MemoryStore
from ottla.log.store import Write
from ottla.raft.types import HardState

GROUP, VOTERS = 1, (1, 2, 3)
TOPIC = TopicImage("t", b"", ())


@pytest.fixture
def disk():
    made = MemoryDisk()
    made.defer_syncs = True
    return made


def opened(disk):
    """The replica as the node's next life opens it."""
    store = MemoryStore(disk)
    factory = ReplicaFactory(
        1, ClusterConfig(), store=store, counters=Counters(), jitter=FirstJitter()
    )
    return factory.open(factory.begin(TOPIC, GROUP, VOTERS, 0), 0, store.append)


@pytest.mark.parametrize("voted", [HardState(), HardState(term=3, vote=2)])
def test_a_first_entry_that_was_torn_is_written_again(disk, voted):
    """Seed 14076642: the replica came back without voters, neither stood nor voted, and a majority
    of which it was one never had a leader."""
    assert opened(disk).core.voters == VOTERS
    MemoryStore(disk).append([Write(GROUP, hard_state=voted)])
    disk.damage(GROUP, 1)
    disk.crash(disk.unsynced_appends)
    replica = opened(disk)
    assert (replica.core.voters, replica.core.last_index) == (VOTERS, 1)
    assert replica.core.term == voted.term
    assert replica.core.deadline is not None


def test_one_whose_first_write_was_lost_begins_anew(disk):
    opened(disk)
    disk.crash()
    assert opened(disk).core.voters == VOTERS


def test_one_that_was_kept_is_as_it_was(disk):
    opened(disk)
    MemoryStore(disk).append([Write(GROUP, hard_state=HardState(term=3, vote=2))])
    disk.crash(disk.unsynced_appends)
    replica = opened(disk)
    assert (replica.core.voters, replica.core.term) == (VOTERS, 3)


def test_a_process_that_has_frozen_objects_is_asked_for_it_once(monkeypatch):
    """With a million frozen objects each question took 100 ms of the loop's turn."""
    asked = []

    def count():
        asked.append(0)
        return 5_000

    monkeypatch.setattr("ottla.broker.event_loop.collecting._Heap.frozen", False)
    monkeypatch.setattr("gc.get_freeze_count", count)
    assert not may_age()
    assert not may_age()
    assert len(asked) == 1


def test_what_python_itself_has_frozen_is_not_taken_for_a_programs(monkeypatch):
    """CPython 3.12 begins with 375: nothing became old unseen, and requests brought full looks."""
    monkeypatch.setattr("ottla.broker.event_loop.collecting._Heap.frozen", False)
    monkeypatch.setattr("ottla.broker.event_loop.collecting._Heap.passed", 0)
    monkeypatch.setattr("gc.get_freeze_count", lambda: 375)
    assert may_age()
