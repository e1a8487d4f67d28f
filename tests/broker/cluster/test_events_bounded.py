"""The list of events is bounded, by number and by the entries it holds on to; what went is counted.

A truncated entry was held as long as its event was among the newest 100,000, whatever its size.
"""

from types import SimpleNamespace

import pytest

from ottla.broker.cluster import events
from ottla.broker.cluster.events import EventLog
from ottla.raft.ready import SoftState
from ottla.raft.roles import Role
from ottla.raft.types import Entry, EntryKind

GROUP = 1
REPLICA = SimpleNamespace(group=GROUP, soft=SoftState(Role.FOLLOWER, term=2, leader=3))
VIEW = SimpleNamespace(replica=lambda _: REPLICA, placed=lambda _: None)
LIFE = SimpleNamespace(node=1, inspect=lambda: VIEW)


def entry(index, size):
    return Entry(index, 1, EntryKind.COMMAND, bytes(size))


@pytest.fixture
def log(monkeypatch):
    """A log of at most ten events and about 1,000 bytes."""
    monkeypatch.setattr(events, "EVENTS_KEPT", 10)
    monkeypatch.setattr(events, "DROPPED_BYTES", 1000)
    return EventLog()


def test_the_newest_stay_and_the_others_are_counted(log):
    for node in range(1, 15):
        log.note("kill", node)
    assert [event.node for event in log] == list(range(5, 15))
    assert (len(log), log.forgotten) == (10, 4)


def test_fewer_stay_where_they_hold_on_to_much(log):
    for index in range(1, 8):
        log.truncated(LIFE, GROUP, [entry(index, 300)])
    held = [event.dropped[0].index for event in log]
    assert held in ([6, 7], [5, 6, 7])
    assert log.forgotten == 7 - len(held)
    log.note("kill", 1)
    assert log.forgotten == 7 - len(held)


def test_the_newest_stays_however_large_it_is(log):
    log.note("kill", 1)
    log.truncated(LIFE, GROUP, [entry(1, 5000)])
    assert ([event.kind for event in log], log.forgotten) == (["truncated"], 1)
    log.note("restart", 1)
    assert ([event.kind for event in log], log.forgotten) == (["restart"], 2)
