"""Figure 2 of the Raft paper, rule by rule, on one core. Each docstring quotes its rule by number.

Where the thesis or etcd's practice refines a rule (pre-vote, an empty entry instead of an empty
AppendEntries), the test says so; those refinements have tests of their own in `test_thesis.py`.
"""

import pytest

from ottla.raft.messages import AppendEntries, AppendReply, Heartbeat, RequestVote, VoteReply
from ottla.raft.ready import SoftState
from ottla.raft.roles import Role
from ottla.raft.types import EntryKind, HardState, Proposal
from raft_lone import ELECTION, GROUP, Lone, all_of, entries, only


class TestState:
    def test_persistent_state_is_written_before_the_answer_leaves(self) -> None:
        """State: updated on stable storage before responding to RPCs."""
        lone = Lone(term=1)
        ready = lone.step(lone.asks(2, (1, 0)))
        assert ready.hard_state == HardState(term=2, vote=2)
        assert only(VoteReply, ready.messages_after).granted
        assert not all_of(VoteReply, ready.messages)

    def test_entries_are_written_before_the_success_leaves(self) -> None:
        """State: log[] is persistent, too."""
        lone = Lone(term=1)
        ready = lone.step(lone.append((1, 0), [1, 1]))
        assert [entry.index for entry in ready.append[0].entries] == [2, 3]
        assert only(AppendReply, ready.messages_after).match == 3
        assert not all_of(AppendReply, ready.messages)

    def test_restart_keeps_term_vote_and_log_but_not_commit(self) -> None:
        """State: currentTerm, votedFor and log[] are persistent, commitIndex starts at 0."""
        core = Lone([1, 1, 2], term=4, vote=3).core
        assert (core.term, core.vote, core.last_index, core.commit) == (4, 3, 4, 0)
        assert core.role is Role.FOLLOWER

    def test_a_leader_starts_with_next_at_its_end_and_match_at_nothing(self) -> None:
        """State on leaders: nextIndex = last log index + 1, matchIndex = 0."""
        lone = Lone([1, 1])
        lone.lead()
        views = lone.core.progress()
        assert [(view.next, view.match) for view in views.values()] == [(4, 0), (4, 0)]


class TestRequestVote:
    def test_1_refuses_an_older_term(self) -> None:
        """RequestVote 1: reply false if term < currentTerm."""
        lone = Lone(term=5)
        reply = only(VoteReply, lone.step(lone.asks(2, (9, 4), term=4)).messages)
        assert (reply.granted, reply.term) == (False, 5)
        assert lone.core.vote == 0

    @pytest.mark.parametrize(
        ("last", "granted"),
        [((3, 2), True), ((4, 2), True), ((2, 3), True), ((2, 2), False), ((9, 1), False)],
    )
    def test_2_votes_for_an_up_to_date_log_only(self, last: tuple[int, int], granted: bool) -> None:
        """RequestVote 2: candidate's log at least as up to date as receiver's (5.4.1)."""
        lone = Lone([1, 2], term=2)
        ready = lone.step(lone.asks(2, last))
        assert only(VoteReply, ready.messages + ready.messages_after).granted is granted

    def test_2_votes_once_per_term(self) -> None:
        """RequestVote 2: votedFor is null or candidateId."""
        lone = Lone(term=1)
        lone.step(lone.asks(2, (1, 0), term=2))
        again = lone.step(lone.asks(2, (1, 0), term=2))
        assert only(VoteReply, again.messages_after).granted
        other = lone.step(lone.asks(3, (9, 1), term=2))
        assert not only(VoteReply, other.messages).granted
        assert lone.core.vote == 2

    def test_2_votes_for_nobody_else_once_the_term_has_a_leader(self) -> None:
        """Whoever leads it has its majority, though this member's vote is still free."""
        lone = Lone(term=1)
        lone.step(lone.append((1, 0), term=2))
        refused = lone.step(lone.asks(3, (9, 1), term=2))
        assert not only(VoteReply, refused.messages).granted
        assert lone.core.vote == 0

    def test_2_remembers_its_vote_through_a_restart(self) -> None:
        """RequestVote 2, with votedFor from stable storage."""
        lone = Lone(term=2, vote=3)
        refused = lone.step(lone.asks(2, (9, 2), term=2))
        assert not only(VoteReply, refused.messages).granted


class TestAppendEntries:
    def test_1_refuses_an_older_term(self) -> None:
        """AppendEntries 1: reply false if term < currentTerm."""
        lone = Lone([1], term=5)
        ready = lone.step(lone.append((2, 1), [4], term=4))
        reply = only(AppendReply, ready.messages_after)
        assert (reply.success, reply.term) == (False, 5)
        assert lone.core.leader == 0
        assert lone.core.last_index == 2

    @pytest.mark.parametrize("prev", [(4, 2), (3, 2), (9, 3)])
    def test_2_refuses_where_the_log_does_not_match(self, prev: tuple[int, int]) -> None:
        """AppendEntries 2: reply false if log doesn't contain an entry at prevLogIndex whose term
        matches prevLogTerm."""
        lone = Lone([1, 1], term=3)
        reply = only(AppendReply, lone.step(lone.append(prev, [3])).messages)
        assert (reply.success, reply.match) == (False, prev[0])
        assert lone.core.last_index == 3

    def test_3_deletes_what_conflicts_and_all_that_follows(self) -> None:
        """AppendEntries 3: if an existing entry conflicts with a new one, delete the existing entry
        and all that follow it."""
        lone = Lone([1, 1, 1, 1], term=2)
        ready = lone.step(lone.append((2, 1), [2]))
        assert ready.append[0].first == 3
        assert (lone.core.last_index, lone.core.log.term_at(3)) == (3, 2)

    def test_3_keeps_what_does_not_conflict(self) -> None:
        """AppendEntries 3: *if* it conflicts. A late, shorter message deletes nothing."""
        lone = Lone([1, 1, 1, 1], term=2)
        ready = lone.step(lone.append((1, 0), [1, 1]))
        assert (ready.append, lone.core.last_index) == ([], 5)
        assert only(AppendReply, ready.messages_after).match == 3

    def test_4_appends_only_what_is_new(self) -> None:
        """AppendEntries 4: append any new entries not already in the log."""
        lone = Lone([1, 1], term=2)
        ready = lone.step(lone.append((1, 0), [1, 1, 2, 2]))
        assert [entry.index for entry in ready.append[0].entries] == [4, 5]

    @pytest.mark.parametrize(("leader_commit", "commit"), [(0, 0), (3, 3), (9, 4)])
    def test_5_commits_what_the_leader_has_but_not_beyond_the_message(
        self, leader_commit: int, commit: int
    ) -> None:
        """AppendEntries 5: commitIndex = min(leaderCommit, index of last new entry). The log holds
        an entry 5 as well, but nothing says that it is the leader's."""
        lone = Lone([1, 1, 1, 1], term=1)
        ready = lone.step(lone.append((2, 1), [1, 1], commit=leader_commit))
        assert ready.commit == commit

    def test_5_commit_never_falls(self) -> None:
        """AppendEntries 5: *if leaderCommit > commitIndex*."""
        lone = Lone([1, 1, 1], term=1)
        lone.step(lone.append((4, 1), commit=4))
        assert lone.step(lone.append((4, 1), commit=2)).commit == 4


class TestAllServers:
    def test_1_what_is_committed_is_handed_out_for_applying(self) -> None:
        """All servers 1: if commitIndex > lastApplied, apply. `Ready.commit` says how far."""
        lone = Lone([1, 1], term=1)
        assert lone.step(lone.append((3, 1), commit=3)).commit == 3

    @pytest.mark.parametrize("role", ["follower", "pre-candidate", "candidate", "leader"])
    def test_2_a_higher_term_makes_a_follower(self, role: str) -> None:
        """All servers 2: term > currentTerm: set currentTerm, convert to follower."""
        lone = _in_role(role)
        term = lone.core.term + 3
        ready = lone.step(lone.append((1, 0), term=term))
        assert (lone.core.role, lone.core.term, lone.core.leader) == (Role.FOLLOWER, term, 2)
        assert ready.hard_state == HardState(term, 0)


def _in_role(role: str) -> Lone:
    lone = Lone(term=1)
    if role == "leader":
        lone.lead()
    elif role != "follower":
        lone.wait(ELECTION)
        if role == "candidate":
            lone.step(VoteReply(GROUP, 2, 1, 2, True, pre=True))
    assert lone.core.role.value == role
    return lone


class TestFollowers:
    def test_1_answers_candidates_and_leaders(self) -> None:
        """Followers 1: respond to RPCs from candidates and leaders."""
        lone = Lone(term=1)
        assert lone.step(lone.asks(2, (1, 0))).messages_after
        assert lone.step(lone.append((1, 0))).messages_after

    def test_2_an_election_timeout_without_word_starts_an_election(self) -> None:
        """Followers 2 (with pre-vote before it, thesis 9.6)."""
        lone = Lone(term=1)
        assert lone.core.deadline == ELECTION
        assert lone.wait(ELECTION - 1).soft is None
        assert lone.wait(1).soft is not None
        assert lone.core.role is Role.PRE_CANDIDATE

    def test_2_word_from_the_leader_or_a_vote_given_puts_it_off(self) -> None:
        """Followers 2: without receiving AppendEntries from current leader or granting vote."""
        lone = Lone(term=1)
        lone.wait(600)
        lone.step(lone.append((1, 0)))
        assert lone.core.deadline == 600 + ELECTION
        lone.wait(ELECTION - 1)
        lone.now += 1
        lone.step(lone.asks(3, (1, 0), term=2, transfer=True))
        assert lone.core.deadline == lone.now + ELECTION

    def test_2_a_vote_refused_does_not_put_it_off(self) -> None:
        """Followers 2: a candidate that cannot win must not keep others from trying."""
        lone = Lone([1], term=1)
        lone.wait(600)
        lone.step(lone.asks(3, (1, 0)))
        assert lone.core.term == 2
        assert lone.core.deadline == ELECTION


class TestCandidates:
    def test_1_starts_an_election(self) -> None:
        """Candidates 1: increment currentTerm, vote for self, reset timer, send RequestVote to all
        others. The requests wait until the vote is durable."""
        lone = Lone([1, 1], term=1, voters=5)
        lone.wait(ELECTION)
        ready = lone.step(*(VoteReply(GROUP, peer, 1, 2, True, pre=True) for peer in (2, 3)))
        assert ready.hard_state == HardState(2, 1)
        requests = all_of(RequestVote, ready.messages_after)
        assert [(r.to, r.term, r.last_index, r.last_term, r.pre) for r in requests] == [
            (peer, 2, 3, 1, False) for peer in (2, 3, 4, 5)
        ]
        assert lone.core.deadline == lone.now + 100  # asks again those who have not answered

    def test_2_a_majority_makes_a_leader(self) -> None:
        """Candidates 2: votes received from majority of servers: become leader."""
        lone = Lone(term=1, voters=5)
        lone.wait(ELECTION)
        lone.step(*(VoteReply(GROUP, peer, 1, 2, True, pre=True) for peer in (2, 3)))
        lone.step(VoteReply(GROUP, 2, 1, 2, True), VoteReply(GROUP, 2, 1, 2, True))
        assert lone.core.leader == 0
        lone.step(VoteReply(GROUP, 3, 1, 2, True))
        assert lone.core.role is Role.LEADER

    def test_2_a_late_grant_of_a_pre_vote_is_no_vote(self) -> None:
        """Both name the term that is asked for."""
        lone = Lone(term=1, voters=5)
        lone.wait(ELECTION)
        lone.step(*(VoteReply(GROUP, peer, 1, 2, True, pre=True) for peer in (2, 3)))
        lone.step(*(VoteReply(GROUP, peer, 1, 2, True, pre=True) for peer in (4, 5)))
        assert lone.core.role is Role.CANDIDATE

    def test_who_is_alone_leads_when_its_vote_is_durable(self) -> None:
        """*Persistent state*: nobody hears of a term that a loss of power could take back. It led
        at once, in memory, and its terms went back (sim-S62)."""
        lone = Lone(voters=1)
        lone.now += ELECTION
        lone.core.advance(lone.now)
        ready = lone.take(hold=True)
        assert (ready.hard_state, ready.append) == (HardState(2, 1), [])
        assert lone.core.leader == 0
        vote = only(VoteReply, ready.messages_after)
        assert (vote.to, vote.term, vote.granted, vote.pre) == (1, 2, True, False)
        assert lone.core.deadline is None, "there is nobody to ask again"
        lone.core.campaign(lone.now + 10 * ELECTION)
        lone.core.advance(lone.now + 20 * ELECTION)
        assert (lone.core.term, lone.core.has_ready()) == (2, False)
        assert lone.step(vote).soft == SoftState(Role.LEADER, 2, 1)

    def test_who_is_not_alone_hears_no_vote_from_itself(self) -> None:
        """A reply that names it as the sender is nobody's, and its term is no term."""
        lone = Lone(term=1)
        lone.lead()
        lone.step(VoteReply(GROUP, 1, 1, 9, True))
        assert (lone.core.role, lone.core.term) == (Role.LEADER, 2)

    @pytest.mark.parametrize(("term", "granted"), [(1, True), (2, False), (3, True)])
    def test_who_is_alone_hears_nothing_but_the_vote_it_waits_for(self, term, granted) -> None:
        lone = Lone(voters=1)
        lone.now += ELECTION
        lone.core.advance(lone.now)
        lone.take(hold=True)
        lone.step(VoteReply(GROUP, 1, 1, term, granted))
        assert (lone.core.role, lone.core.term) == (Role.CANDIDATE, 2)

    def test_3_word_from_a_new_leader_makes_a_follower(self) -> None:
        """Candidates 3: AppendEntries received from new leader: convert to follower."""
        lone = _in_role("candidate")
        lone.step(lone.append((1, 0)))
        assert (lone.core.role, lone.core.leader) == (Role.FOLLOWER, 2)

    def test_4_an_election_timeout_starts_anew(self) -> None:
        """Candidates 4: election timeout elapses: start new election (asking first, 9.6)."""
        lone = _in_role("candidate")
        term = lone.core.term
        ready = lone.wait(ELECTION)
        assert all(request.term == term + 1 for request in all_of(RequestVote, ready.messages))
        assert (lone.core.role, lone.core.term) == (Role.PRE_CANDIDATE, term)


class TestLeaders:
    def test_1_announces_itself_at_once(self) -> None:
        """Leaders 1: upon election send initial AppendEntries to each server. They carry the new
        leader's first entry, an empty one (section 8)."""
        lone = Lone([1, 1])
        ready = lone.lead()
        sent = all_of(AppendEntries, ready.messages)
        assert [(m.to, m.prev_index, m.prev_term, m.last_index) for m in sent] == [
            (2, 3, 1, 4),
            (3, 3, 1, 4),
        ]
        assert [entry.kind for entry in ready.append[0].entries] == [EntryKind.EMPTY]

    def test_2_appends_what_is_proposed(self) -> None:
        """Leaders 2: command received from client: append entry to local log."""
        lone = Lone()
        lone.lead()
        first = lone.core.propose([Proposal(EntryKind.COMMAND, b"a")] * 2, lone.core.term)
        ready = lone.take()
        written = ready.append[0].entries
        assert first == 3
        assert [(entry.index, entry.term) for entry in written] == [(3, 2), (4, 2)]

    def test_3_sends_from_next_index(self) -> None:
        """Leaders 3: last log index >= nextIndex: send AppendEntries starting at nextIndex."""
        lone = Lone()
        lone.lead()
        lone.step(lone.matched(2, 2))
        sent = only(AppendEntries, lone.propose(1, 1).messages)
        assert (sent.to, sent.prev_index, sent.last_index) == (2, 2, 4)

    def test_3_success_moves_next_and_match(self) -> None:
        """Leaders 3: if successful: update nextIndex and matchIndex for follower."""
        lone = Lone()
        lone.lead()
        lone.step(lone.matched(2, 2))
        view = lone.core.progress()[2]
        assert (view.match, view.next) == (2, 3)

    def test_3_a_refusal_moves_next_back_and_tries_again(self) -> None:
        """Leaders 3: if AppendEntries fails because of log inconsistency: decrement nextIndex and
        retry (in one step to the hint, 5.3)."""
        lone = Lone([1, 1, 1, 1])
        lone.lead()
        ready = lone.step(lone.refused(2, 5, (3, 1)))
        again = only(AppendEntries, ready.messages)
        assert (again.prev_index, again.last_index) == (3, 6)

    def test_4_commits_what_a_majority_holds(self) -> None:
        """Leaders 4: N > commitIndex, a majority of matchIndex[i] >= N, log[N].term ==
        currentTerm: commitIndex = N."""
        lone = Lone(voters=5)
        lone.lead()
        assert lone.step(lone.matched(2, 2)).commit == 0
        assert lone.step(lone.matched(3, 2)).commit == 2

    def test_4_never_commits_an_older_term_by_counting(self) -> None:
        """Leaders 4 (5.4.2, figure 8): log[N].term == currentTerm."""
        lone = Lone([1, 1])
        lone.lead()
        assert lone.step(lone.matched(2, 3), lone.matched(3, 3)).commit == 0
        assert lone.step(lone.matched(2, 4)).commit == 4

    def test_4_counts_itself_only_when_its_own_disk_is_done(self) -> None:
        """Leaders 4, with thesis 10.2.1: the leader's write runs beside the followers'."""
        lone = Lone()
        lone.lead()
        lone.step(lone.matched(2, 2))
        held = lone.propose(1, hold=True)
        assert lone.step(lone.matched(2, 3)).commit == 2
        lone.finish(held)
        assert lone.take().commit == 3


def test_heartbeats_of_others_change_nothing_on_a_leader() -> None:
    """Two leaders of one term cannot be; input that says so is ignored."""
    lone = Lone()
    lone.lead()
    lone.step(Heartbeat(GROUP, 2, 1, lone.core.term, 0), lone.append((1, 0), [2]))
    assert lone.core.role is Role.LEADER
    assert lone.core.last_index == 2


def test_entries_helper_numbers_from_first() -> None:
    assert [(entry.index, entry.term) for entry in entries(5, [1, 2])] == [(5, 1), (6, 2)]
