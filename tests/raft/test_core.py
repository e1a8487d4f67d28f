"""The facade's contract: what is refused when built, what one round hands out, what time does.

The last test throws messages made of nonsense at members in every role: input of a peer is answered
or ignored, it never raises. Fields are small numbers around those that mean something.
"""

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.raft.core import RaftCore
from ottla.raft.errors import CorruptStateError, InvalidConfigError
from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    InstallSnapshot,
    RequestVote,
    SnapshotReply,
    TimeoutNow,
    VoteReply,
)
from ottla.raft.raft_log import RaftLog, bootstrap
from ottla.raft.roles import Role
from ottla.raft.types import EntryKind, HardState, Proposal, SnapshotMeta
from raft_lone import CONFIG, ELECTION, GROUP, Lone, NoJitter, all_of, entries, log_of, only


class TestBuilding:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("node", 0),
            ("election_timeout", 0),
            ("retransmit", -1),
            ("max_append_bytes", 0),
            ("max_inflight_bytes", 0),
            ("snapshot_chunk_bytes", 0),
            ("retransmit", ELECTION),
        ],
    )
    def test_settings_that_cannot_work_are_refused(self, field: str, value: int) -> None:
        with pytest.raises(InvalidConfigError, match=str(value)):
            replace(CONFIG, **cast(dict[str, Any], {field: value}))

    def test_a_log_ahead_of_the_term_is_a_corrupt_disk(self) -> None:
        with pytest.raises(
            CorruptStateError, match="entry 2 has term 3, but the term on disk is 2"
        ):
            Lone([3], term=2)

    def test_waits_are_drawn_from_one_to_two_election_timeouts(self) -> None:
        class Longest(NoJitter):
            def randrange(self, stop: int, /) -> int:
                return stop - 1

        core = RaftCore(CONFIG, hard_state=HardState(), log=log_of([]), jitter=Longest(), now=7)
        assert core.deadline == 7 + 2 * ELECTION - 1

    def test_a_member_without_a_configuration_only_follows_until_it_has_one(self) -> None:
        """A wiped disk: it must not vote as if it had never voted, but may be filled again."""
        core = RaftCore(
            CONFIG,
            hard_state=HardState(),
            log=RaftLog.restore(None, []),
            jitter=NoJitter(),
            now=0,
        )
        assert core.deadline is None
        core.campaign(0)
        core.step(RequestVote(GROUP, 2, 1, 5, 9, 4), 0)
        assert not only(VoteReply, core.ready().messages).granted
        _, first = bootstrap([1, 2, 3])
        core.step(AppendEntries(GROUP, 2, 1, 5, 0, 0, 2, 0, [*first, *entries(2, [5])]), 10)
        assert core.voters == (1, 2, 3)
        assert core.deadline == 10 + ELECTION


class TestOneRound:
    def test_several_proposals_leave_together(self) -> None:
        lone = Lone()
        lone.lead()
        lone.step(lone.matched(2, 2))
        for payload in (b"a", b"b", b"c"):
            lone.core.propose([Proposal(EntryKind.BATCH, payload)], lone.core.term)
        ready = lone.take()
        assert [(r.first, len(r.entries)) for r in ready.append] == [(3, 3)]
        sent = only(AppendEntries, ready.messages)
        assert (sent.prev_index, sent.last_index, sent.entries) == (2, 5, ())

    def test_payloads_are_handed_on_as_they_are(self) -> None:
        lone = Lone()
        lone.lead()
        payload = b"the very same"
        lone.core.propose([Proposal(EntryKind.COMMAND, payload)], lone.core.term)
        entry = lone.take().append[0].entries[0]
        assert entry.payload is payload
        assert entry.kind is EntryKind.COMMAND

    @pytest.mark.parametrize("off", [-1, 1])
    def test_proposals_are_for_one_term_only(self, off: int) -> None:
        lone = Lone()
        lone.lead()
        proposal = [Proposal(EntryKind.BATCH, b"")]
        assert lone.core.propose(proposal, lone.core.term + off) is None
        assert lone.core.last_index == 2

    def test_followers_propose_nothing(self) -> None:
        assert Lone().core.propose([Proposal(EntryKind.BATCH, b"")], 1) is None

    def test_voters_are_fixed(self) -> None:
        lone = Lone()
        lone.lead()
        with pytest.raises(AssertionError, match="entry 3: voters are fixed"):
            lone.core.propose([Proposal(EntryKind.CONFIGURATION, b"")], lone.core.term)

    def test_nothing_new_is_nothing_ready(self) -> None:
        lone = Lone()
        assert not lone.core.has_ready()
        lone.lead()
        lone.step(lone.matched(2, 2), lone.matched(3, 2))
        assert not lone.core.has_ready()
        lone.core.step(lone.matched(2, 2), lone.now)
        lone.core.step(HeartbeatReply(GROUP, 2, 1, lone.core.term), lone.now)
        lone.core.advance(lone.now)
        assert not lone.core.has_ready()

    def test_there_and_back_is_no_change_of_role(self) -> None:
        lone = Lone(term=1)
        lone.core.advance(ELECTION)
        for peer in (2, 3):
            lone.core.step(VoteReply(GROUP, peer, 1, 1, False, pre=True), ELECTION)
        ready = lone.take()
        assert (ready.soft, ready.hard_state) == (None, None)
        assert len(all_of(RequestVote, ready.messages)) == 2


class TestCompaction:
    def test_of_what_a_newer_snapshot_replaced_is_ignored(self) -> None:
        lone = Lone([1, 1, 1])
        lone.step(lone.append((4, 1), commit=4))
        lone.core.compact(SnapshotMeta(4, 1, (1, 2, 3), 9))
        lone.core.compact(SnapshotMeta(3, 1, (1, 2, 3), 9))
        assert lone.core.first_index == 5

    def test_of_what_is_not_committed_asserts(self) -> None:
        lone = Lone([1, 1, 1])
        with pytest.raises(AssertionError, match="compact to 3, but only 0 is committed"):
            lone.core.compact(SnapshotMeta(3, 1, (1, 2, 3), 9))

    def test_a_restart_begins_with_what_the_snapshot_says_is_committed(self) -> None:
        core = Lone([2], term=2, snapshot=SnapshotMeta(8, 1, (1, 2, 3), 9)).core
        assert (core.commit, core.first_index, core.last_index) == (8, 9, 9)


class TestReading:
    def test_what_a_heartbeat_may_say_is_committed(self) -> None:
        lone = Lone()
        assert lone.core.commit_known_to(2) == 0
        lone.lead()
        lone.step(lone.matched(2, 2))
        assert [lone.core.commit_known_to(node) for node in (2, 3, 9)] == [2, 0, 0]

    def test_only_leaders_have_progress_and_a_term_start(self) -> None:
        lone = Lone([1])
        assert (lone.core.progress(), lone.core.term_start) == ({}, None)
        lone.lead()
        assert (list(lone.core.progress()), lone.core.term_start) == ([2, 3], 3)

    def test_step_down_of_others_is_nothing(self) -> None:
        lone = Lone(term=1)
        lone.core.step_down(5)
        assert not lone.core.has_ready()


small = st.integers(-2, 8)
flags = st.booleans()
who = st.tuples(st.sampled_from([GROUP, 9]), st.integers(0, 4), st.integers(0, 2), small)
batches = st.lists(
    st.builds(entries, small, st.lists(st.integers(0, 4), max_size=1)), max_size=3
).map(lambda lists: [entry for each in lists for entry in each])
NONSENSE = st.one_of(
    st.builds(lambda w, *rest: RequestVote(*w, *rest), who, small, small, flags, flags),
    st.builds(lambda w, *rest: VoteReply(*w, *rest), who, flags, flags),
    st.builds(lambda w, *rest: AppendEntries(*w, *rest), who, small, small, small, small, batches),
    st.builds(lambda w, *rest: AppendReply(*w, *rest), who, flags, small, small, small),
    st.builds(lambda w, *rest: Heartbeat(*w, *rest), who, small, small),
    st.builds(lambda w, *rest: HeartbeatReply(*w, *rest), who, small),
    st.builds(lambda w, *rest: SnapshotReply(*w, *rest), who, small, small, flags),
    st.builds(TimeoutNow, st.just(GROUP), st.integers(0, 4), st.just(1), small),
    st.builds(
        lambda w, *rest: InstallSnapshot(*w, *rest),
        who,
        small,
        small,
        st.just((1, 2)),
        small,
        small,
        small,
        st.binary(max_size=6),
    ),
)


@pytest.mark.slow
@settings(max_examples=400)
@given(message=NONSENSE, role=st.sampled_from(list(Role)), at=st.integers(-5, 5000))
def test_no_message_raises_and_terms_never_fall(message, role: Role, at: int) -> None:
    """Malformed or impossible input of a peer is answered or ignored."""
    lone = Lone([1, 1, 2], term=2)
    if role is Role.LEADER:
        lone.lead()
    elif role is not Role.FOLLOWER:
        lone.wait(ELECTION)
        if role is Role.CANDIDATE:
            lone.step(VoteReply(GROUP, 2, 1, 3, True, pre=True))
    assert lone.core.role is role
    before = lone.core.term
    lone.core.step(message, at)
    lone.take()
    assert lone.core.term >= before
    assert lone.core.commit <= lone.core.last_index


def stepped(lone: Lone, message) -> bool:
    """Step it; False if the member ends, as it contradicts what is committed."""
    try:
        lone.core.step(message, lone.now)
    except AssertionError as error:
        if "is committed" not in str(error):
            raise
        return False
    return True


@pytest.mark.slow
@settings(max_examples=200)
@given(sent=st.lists(NONSENSE, min_size=1, max_size=8), leads=st.booleans())
def test_messages_in_a_row_end_a_member_only_where_they_contradict_what_is_committed(
    sent, leads: bool
) -> None:
    """On a compacted log, with what each message leaves behind for the next."""
    lone = Lone([1, 2], term=2, snapshot=SnapshotMeta(3, 1, (1, 2, 3), 9))
    if leads:
        lone.lead()
    for message in sent:
        term, commit = lone.core.term, lone.core.commit
        if not stepped(lone, message):
            return
        lone.take()
        lone.wait(ELECTION // 3)
        assert lone.core.term >= term
        assert commit <= lone.core.commit <= lone.core.last_index
