"""What a trace has: all messages between nodes, as the specification names them."""

from typing import get_args

import pytest

from ottla.broker.heartbeats.messages import NO_REPLICA, Beat, BeatAck, BeatItem
from ottla.raft import messages as raft
from ottla.sim.settings.settings import RunConfig
from ottla.sim.specification.specification import BY_EVENT, name_of
from ottla.sim.specification.trace import Message
from ottla.sim.tracing.tracer import told_of
from sim_traced import traced

ENDS = (7, 1, 2, 5)
"""Group, sender, receiver, term."""
SENT = [
    (raft.RequestVote(*ENDS, 9, 4, pre=True), Message("vote?", 1, 2, 5, 9, 4, pre=True)),
    (raft.VoteReply(*ENDS, granted=True), Message("vote", 1, 2, 5, yes=True)),
    (raft.AppendEntries(*ENDS, 9, 4, 9, 8), Message("append?", 1, 2, 5, 9, 4, commit=8)),
    (raft.AppendReply(*ENDS, True, 9), Message("append", 1, 2, 5, 9, yes=True)),
    (raft.Heartbeat(*ENDS, 8, 3), Message("heartbeat?", 1, 2, 5, commit=8, context=3)),
    (raft.HeartbeatReply(*ENDS, 3), Message("heartbeat", 1, 2, 5, context=3)),
    (
        raft.InstallSnapshot(*ENDS, 9, 4, (1, 2), 10, 5, 90, b"12345"),
        Message("snapshot?", 1, 2, 5, 9, 4, span=(10, 15, 90)),
    ),
    (raft.SnapshotReply(*ENDS, 9, 15), Message("snapshot", 1, 2, 5, 9, span=(0, 15, 0))),
    (raft.TimeoutNow(*ENDS), Message("timeout-now", 1, 2, 5)),
]


@pytest.mark.parametrize(("sent", "told"), SENT, ids=[each.kind for _, each in SENT])
def test_each_message_of_raft_is_told(sent, told):
    assert told_of(sent) == [(7, told)]
    assert {f"send {told.kind}", f"receive {told.kind}"} <= BY_EVENT.keys()


def test_no_message_of_raft_is_missing():
    assert [type(each) for each, _ in SENT] == list(get_args(raft.Message))


def test_a_heartbeat_of_a_node_is_told_for_each_group_that_it_leads():
    items = (
        BeatItem(7, 5, 8, True),
        BeatItem(8, 6, NO_REPLICA, True),
        BeatItem(9, 6, 0, False),
    )
    ack = BeatAck(1, 2, 1, 1, 1, 0, ((9, 7),))
    beat = Beat(1, 2, 1, 1, 1, 1, True, items, 0, ack)
    assert told_of(beat) == [
        (7, Message("heartbeat?", 1, 2, 5, commit=8)),
        (9, Message("heartbeat", 1, 2, 7)),
    ]


def test_runs_show_every_kind_of_event():
    """Otherwise a rule of the specification would judge nothing."""
    faults = RunConfig(
        nodes=3,
        faults="overtaken transfer kill",
        fault_every_ms=300,
        load_ms=1_000,
        records=30,
    )
    unseen = set(BY_EVENT)
    for seed in range(3, 30):
        unseen -= set(map(name_of, traced(seed, faults)[0]))
        if not unseen:
            return
    raise AssertionError(f"never seen: {sorted(unseen)}")
