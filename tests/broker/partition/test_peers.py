"""What a replica makes of messages that are late, or make no sense: nothing, and it goes on.

Expectations from `raft/core.py` (input from peers may be lost, repeated, overtaken or nonsense) and
promise-A2 (in sync is who held the leader's log, not who once said so).
"""

from __future__ import annotations

import pytest

from broker_core_partition import ELSEWHERE, LAG, batch
from broker_core_replicas import GROUP, NOW, produce, serving, synced
from broker_core_world import SECOND
from ottla.broker.turn.tickets import ANY_EPOCH, FetchTicket
from ottla.raft.messages import AppendEntries, AppendReply
from ottla.raft.types import Entry, EntryKind


@pytest.mark.parametrize(
    ("term", "match"),
    [(0, 3), (0, 50), (1, 50)],
    ids=["of an earlier term", "of an earlier, longer log", "beyond the log's end"],
)
def test_an_acknowledgement_the_core_does_not_believe_puts_nobody_in_sync(term, match):
    """It did: an answer delayed over an election made a dead follower count for min.insync."""
    replica = serving()
    produce(replica, batch(7, 0))
    synced(replica, replica.turn(NOW))
    in_sync = replica.machine.state.in_sync
    late = NOW + LAG + 1
    assert in_sync.in_sync(late) == (1,)
    replica.submit(AppendReply(GROUP, 2, 1, term, True, match))
    replica.turn(late)
    assert in_sync.in_sync(late) == (1,)
    replica.submit(AppendReply(GROUP, 3, 1, 1, True, 3))
    replica.turn(late)
    assert in_sync.in_sync(late) == (1, 3), "a real one does"


def test_a_copy_behind_the_news_of_a_new_leader_is_not_told_the_offset_of_what_it_replaced():
    """With acks=1 it was: the entry was in this log when the turn began, and gone when it ended."""
    replica = serving()
    original = produce(replica, batch(7, 0))
    synced(replica, replica.turn(NOW))
    assert original.index == 3
    theirs = Entry(3, 2, EntryKind.EMPTY, b"")
    replica.submit(AppendEntries(GROUP, 2, 1, 2, 2, 1, 3, 2, [theirs]))
    copy = produce(replica, batch(7, 0), acks=1)
    effects = replica.turn(NOW)
    assert list(effects.answers) == [original, copy]
    assert [each.error for each in effects.answers] == [ELSEWHERE] * 2
    assert [original.leader, copy.leader] == [2] * 2


def test_a_gap_behind_that_news_asks_for_no_barrier_and_a_reader_goes_elsewhere_too():
    replica = serving()
    replica.submit(AppendEntries(GROUP, 2, 1, 2, 2, 1, 2, 2))
    gap = produce(replica, batch(7, 3))
    reader = FetchTicket(0, 1000, ANY_EPOCH, lambda _: None, NOW + SECOND)
    replica.submit(reader)
    assert list(replica.turn(NOW).answers) == [gap, reader]
    assert {gap.error, reader.error} == {ELSEWHERE}
