"""Descriptions say everything, in one line, and the diagrams show every row of their tables.

Transcripts depend on these texts, so each form is pinned here once, where a change is easy to see,
instead of in all golden files.
"""

import pytest

from ottla.raft.describe import describe_message
from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    InstallSnapshot,
    Message,
    RequestVote,
    SnapshotReply,
    TimeoutNow,
    VoteReply,
)
from ottla.raft.progress import PROGRESS
from ottla.raft.roles import TRANSITIONS
from ottla.raft.types import SnapshotMeta
from pages_raft import progress_diagram, role_diagram
from raft_describe import describe_core, describe_log, describe_ready
from raft_lone import GROUP, Lone

WHO = (GROUP, 1, 2, 5)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (RequestVote(*WHO, 7, 4), "RequestVote term=5 last=7/4"),
        (RequestVote(*WHO, 7, 4, pre=True), "RequestVote term=5 last=7/4 pre"),
        (RequestVote(*WHO, 7, 4, transfer=True), "RequestVote term=5 last=7/4 transfer"),
        (VoteReply(*WHO, granted=True), "VoteReply term=5 granted"),
        (VoteReply(*WHO, granted=False, pre=True), "VoteReply term=5 refused pre"),
        (AppendEntries(*WHO, 3, 2, 3, 1), "AppendEntries term=5 prev=3/2 entries=none commit=1"),
        (AppendEntries(*WHO, 3, 2, 4, 1), "AppendEntries term=5 prev=3/2 entries=4 commit=1"),
        (AppendEntries(*WHO, 3, 2, 9, 1), "AppendEntries term=5 prev=3/2 entries=4..9 commit=1"),
        (AppendReply(*WHO, success=True, match=4), "AppendReply term=5 match=4"),
        (AppendReply(*WHO, False, 4, 3, 2), "AppendReply term=5 refused=4 hint=3/2"),
        (Heartbeat(*WHO, 4), "Heartbeat term=5 commit=4"),
        (Heartbeat(*WHO, 4, 6), "Heartbeat term=5 commit=4 context=6"),
        (HeartbeatReply(*WHO), "HeartbeatReply term=5"),
        (HeartbeatReply(*WHO, 6), "HeartbeatReply term=5 context=6"),
        (
            InstallSnapshot(*WHO, 8, 4, (1, 2), 10, 5, 40),
            "InstallSnapshot term=5 snapshot=8/4 bytes=10..15 of 40",
        ),
        (SnapshotReply(*WHO, 8, 15), "SnapshotReply term=5 snapshot=8 received=15"),
        (SnapshotReply(*WHO, 8, 40, done=True), "SnapshotReply term=5 snapshot=8 received=40 done"),
        (TimeoutNow(*WHO), "TimeoutNow term=5"),
    ],
)
def test_a_message_is_one_line(message: Message, text: str) -> None:
    assert describe_message(message) == f"1>2 {text}"


def test_a_leader_describes_its_followers() -> None:
    lone = Lone([1, 1, 3], term=3)
    lone.lead()
    lone.step(lone.matched(2, 5))
    lone.core.transfer(3, lone.now)
    assert describe_core(lone.core) == [
        "1 leader term=4 vote=1 leader=1 commit=5 transferring to 3",
        "  log 1/0 2..3/1 4/3 5/4 persisted=5",
        "  follower 2 replicate match=5 next=6",
        "  follower 3 probe match=0 next=5",
    ]


def test_a_compacted_log_shows_its_boundary() -> None:
    lone = Lone([2, 2], term=2, snapshot=SnapshotMeta(4, 1, (1, 2, 3), 0))
    assert describe_log(lone.core) == "(4/1) 5..6/2"


def test_a_round_is_told_in_the_order_of_its_effects() -> None:
    lone = Lone()
    lone.core.barrier(0)
    ready = lone.step(lone.append((5, 1)), lone.append((1, 0), [1, 1]))
    assert describe_ready(ready) == [
        "role follower term=1 leader=2",
        "send 1>2 AppendReply term=1 refused=5 hint=1/0",
        "write from 2: 2/1 batch, 3/1 batch",
        "then send 1>2 AppendReply term=1 match=3",
        "barrier 1 failed",
    ]


def test_diagrams_show_every_row() -> None:
    roles, progress = role_diagram(), progress_diagram()
    for row in TRANSITIONS:
        arrow = f"    {row.source.value} --> {row.target.value}:".replace("pre-cand", "pre_cand")
        lines = [line for line in roles.splitlines() if line.startswith(arrow)]
        assert row.trigger.value in lines[0]
    for move in PROGRESS:
        arrow = f"    {move.source.value} --> {move.target.value}:"
        lines = [line for line in progress.splitlines() if line.startswith(arrow)]
        assert move.event.value in lines[0]
    assert roles.startswith("stateDiagram-v2\n")
