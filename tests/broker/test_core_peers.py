"""What a replica makes of messages that are late, or make no sense: nothing, and it goes on.

Expectations from `raft/core.py` (input from peers may be lost, repeated, overtaken or nonsense) and
mission-A2 (in sync is who held the leader's log, not who once said so).
"""

from __future__ import annotations

import pytest

from broker_core_partition import LAG, batch
from broker_core_replicas import GROUP, NOW, produce, serving, synced
from ottla.raft.messages import AppendReply


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
