"""Sections of Ongaro's thesis that refine figure 2, sentence by sentence, on one core.

One class per section; a test's name is the sentence. What the project adds to a section (late
vouching instead of heartbeats, probing without bytes) stands beside it.
"""

import pytest

from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    Message,
    RequestVote,
    TimeoutNow,
    VoteReply,
)
from ottla.raft.ready import BarrierOutcome, SoftState
from ottla.raft.roles import Role
from raft_lone import ELECTION, GROUP, RETRANSMIT, Lone, all_of, only


def leader(voters: int = 3) -> Lone:
    """A leader whose own first entry is committed and known to its followers."""
    lone = Lone(voters=voters)
    lone.lead()
    lone.step(*(lone.matched(peer, 2) for peer in lone.peers))
    return lone


def beat(lone: Lone, sender: int = 2, term: int | None = None, context: int = 0) -> Heartbeat:
    return Heartbeat(GROUP, sender, 1, lone.core.term if term is None else term, 0, context)


def answer(lone: Lone, sender: int, context: int = 0) -> HeartbeatReply:
    return HeartbeatReply(GROUP, sender, 1, lone.core.term, context)


class TestTransfer:
    """Thesis 3.10, leadership transfer extension."""

    def test_the_prior_leader_stops_accepting_requests(self) -> None:
        lone = leader()
        assert lone.core.transfer(3, lone.now)
        assert lone.core.propose([], lone.core.term) is None
        assert lone.core.transferring_to == 3

    def test_it_waits_until_the_target_has_the_whole_log(self) -> None:
        lone = leader()
        lone.propose(1)
        lone.core.transfer(3, lone.now)
        assert not all_of(TimeoutNow, lone.take().messages)
        assert not all_of(TimeoutNow, lone.step(lone.matched(2, 3)).messages)
        assert only(TimeoutNow, lone.step(lone.matched(3, 3)).messages).to == 3

    def test_the_target_starts_an_election_at_once(self) -> None:
        lone = Lone(term=1)
        lone.step(lone.append((1, 0)))
        ready = lone.step(TimeoutNow(GROUP, 2, 1, 1))
        requests = all_of(RequestVote, ready.messages_after)
        assert all(request.transfer and not request.pre for request in requests)
        assert (lone.core.role, lone.core.term) == (Role.CANDIDATE, 2)

    def test_only_the_leader_may_order_it(self) -> None:
        lone = Lone(term=1)
        lone.step(lone.append((1, 0)))
        lone.step(TimeoutNow(GROUP, 3, 1, 1))
        assert lone.core.role is Role.FOLLOWER

    def test_it_is_given_up_after_an_election_timeout(self) -> None:
        lone = leader()
        lone.core.transfer(3, lone.now)
        lone.take()
        lone.wait(ELECTION - 1)
        lone.step(answer(lone, 2))
        assert lone.core.transferring_to == 3
        lone.wait(1)
        assert lone.core.transferring_to == 0
        assert lone.propose(1).append

    def test_the_order_is_repeated_when_it_is_lost(self) -> None:
        lone = leader()
        lone.core.transfer(3, lone.now)
        lone.take()
        assert only(TimeoutNow, lone.wait(RETRANSMIT).messages).to == 3

    def test_losing_leadership_ends_it(self) -> None:
        lone = leader()
        lone.core.transfer(3, lone.now)
        lone.step(beat(lone, term=lone.core.term + 1))
        assert lone.core.transferring_to == 0


class TestVoteLeases:
    """Thesis 4.2.3, disruptive servers."""

    def test_who_heard_a_leader_lately_does_not_vote_nor_adopt_the_term(self) -> None:
        lone = Lone(term=1)
        lone.step(lone.append((1, 0)))
        lone.now = ELECTION - 1
        ready = lone.step(lone.asks(3, (9, 1), term=8))
        assert not ready.messages
        assert not ready.messages_after
        assert (lone.core.term, lone.core.leader) == (1, 2)

    def test_after_the_shortest_election_timeout_it_votes(self) -> None:
        lone = Lone(term=1)
        lone.step(lone.append((1, 0)))
        lone.now = ELECTION
        assert only(VoteReply, lone.step(lone.asks(3, (9, 1))).messages_after).granted

    def test_a_transfer_overrides_it(self) -> None:
        lone = Lone(term=1)
        lone.step(lone.append((1, 0)))
        ready = lone.step(lone.asks(3, (9, 1), transfer=True))
        assert only(VoteReply, ready.messages_after).granted

    def test_a_leader_is_its_own_lease(self) -> None:
        lone = leader()
        term = lone.core.term
        lone.step(lone.asks(3, (9, 9), term=term + 5))
        assert (lone.core.role, lone.core.term) == (Role.LEADER, term)

    def test_a_leader_vouched_for_late_counts_from_when_it_was_heard(self) -> None:
        """No heartbeats are sent; whoever heard of the node says so before a vote is asked."""
        lone = Lone(term=1)
        lone.step(lone.append((1, 0)))
        lone.now = ELECTION + 300
        lone.core.step(beat(lone), 600)
        lone.step(lone.asks(3, (9, 1)))
        assert (lone.core.term, lone.core.deadline) == (1, 600 + ELECTION)

    def test_a_leader_vouched_for_late_takes_back_nothing(self) -> None:
        lone = Lone(term=1)
        lone.now = 700
        lone.step(lone.append((1, 0)))
        lone.core.step(beat(lone), 300)
        assert lone.core.deadline == 700 + ELECTION

    def test_a_member_with_a_term_ahead_makes_the_leader_catch_up(self) -> None:
        """Otherwise it could neither be elected nor follow."""
        lone = Lone(term=7)
        messages: list[Message] = [beat(lone, term=5), lone.append((1, 0), term=5)]
        ready = lone.step(*messages)
        assert only(HeartbeatReply, ready.messages_after).term == 7
        assert only(AppendReply, ready.messages_after).term == 7


class TestCheckQuorum:
    """Thesis 6.2, a leader that cannot reach its cluster."""

    def test_a_leader_steps_down_without_a_majority_for_an_election_timeout(self) -> None:
        lone = leader(voters=5)
        lone.now += 500
        lone.step(answer(lone, 2))
        assert lone.wait(499).soft is None
        assert lone.core.leader == 1
        assert lone.wait(1).soft == SoftState(Role.FOLLOWER, 2, 0)

    def test_whoever_vouches_late_moves_the_time(self) -> None:
        lone = leader(voters=5)
        start = lone.now
        lone.now += 2 * ELECTION
        lone.core.step(answer(lone, 2), start + 1500)
        lone.core.step(answer(lone, 3), start + 1400)
        lone.core.advance(lone.now)
        assert (lone.core.role, lone.core.deadline) == (Role.LEADER, start + 1400 + ELECTION)

    def test_advance_too_early_decides_nothing(self) -> None:
        lone = leader()
        for _ in range(50):
            lone.core.advance(lone.now + ELECTION - 1)
        assert lone.core.role is Role.LEADER

    def test_a_group_of_one_waits_for_nothing(self) -> None:
        lone = Lone(voters=1)
        lone.lead()
        assert lone.core.commit == 2
        assert lone.core.deadline is None


class TestBarrier:
    """Thesis 6.4, read-only queries without the log."""

    def test_1_needs_an_entry_of_the_own_term_committed(self) -> None:
        lone = Lone([1, 1])
        lone.lead()
        ticket = lone.core.barrier(lone.now)
        lone.take()
        assert not lone.step(answer(lone, 2, ticket), answer(lone, 3, ticket)).barriers
        assert lone.step(lone.matched(2, 4)).barriers == [BarrierOutcome(ticket, 4)]

    def test_2_saves_the_commit_index_of_when_it_was_asked(self) -> None:
        lone = leader()
        ticket = lone.core.barrier(lone.now)
        lone.propose(1)
        lone.step(lone.matched(2, 3))
        assert lone.core.commit == 3
        assert lone.step(answer(lone, 2, ticket)).barriers == [BarrierOutcome(ticket, 2)]

    def test_3_needs_a_round_that_a_majority_answers(self) -> None:
        lone = leader(voters=5)
        ticket = lone.core.barrier(lone.now)
        assert {m.to for m in all_of(Heartbeat, lone.take().messages)} == {2, 3, 4, 5}
        assert not lone.step(answer(lone, 2, ticket), answer(lone, 2, ticket)).barriers
        assert lone.step(answer(lone, 3, ticket)).barriers == [BarrierOutcome(ticket, 2)]

    def test_3_answers_to_earlier_rounds_do_not_count(self) -> None:
        lone = leader()
        first = lone.core.barrier(lone.now)
        lone.take()
        second = lone.core.barrier(lone.now)
        lone.take()
        assert lone.step(answer(lone, 2, first)).barriers == [BarrierOutcome(first, 2)]
        assert lone.step(answer(lone, 2, second)).barriers == [BarrierOutcome(second, 2)]

    def test_3_barriers_of_one_turn_share_a_round(self) -> None:
        lone = leader()
        tickets = [lone.core.barrier(lone.now) for _ in range(3)]
        assert len(all_of(Heartbeat, lone.take().messages)) == 2
        ended = lone.step(answer(lone, 3, tickets[-1])).barriers
        assert ended == [BarrierOutcome(ticket, 2) for ticket in tickets]

    def test_a_lost_round_is_sent_again(self) -> None:
        lone = leader()
        ticket = lone.core.barrier(lone.now)
        lone.take()
        assert {m.context for m in all_of(Heartbeat, lone.wait(RETRANSMIT).messages)} == {ticket}

    def test_it_fails_after_an_election_timeout_without_a_majority(self) -> None:
        lone = leader(voters=5)
        lone.wait(600)
        ticket = lone.core.barrier(lone.now)
        lone.take()
        lone.now += 300
        lone.step(answer(lone, 2), answer(lone, 3))
        assert lone.wait(ELECTION - 300).barriers == [BarrierOutcome(ticket, None)]
        assert lone.core.role is Role.LEADER

    @pytest.mark.parametrize("loss", ["resigned", "higher term", "quorum lost"])
    def test_it_fails_when_leadership_is_lost(self, loss: str) -> None:
        lone = leader()
        lone.wait(400)
        ticket = lone.core.barrier(lone.now)
        lone.take()
        if loss == "resigned":
            lone.core.step_down(lone.now)
        elif loss == "higher term":
            lone.core.step(beat(lone, term=9), lone.now)
        else:
            lone.core.advance(lone.now + 600)
        assert lone.take().barriers == [BarrierOutcome(ticket, None)]

    def test_it_fails_at_once_on_others(self) -> None:
        lone = Lone()
        ticket = lone.core.barrier(0)
        assert lone.take().barriers == [BarrierOutcome(ticket, None)]

    def test_it_holds_at_once_in_a_group_of_one(self) -> None:
        lone = Lone(voters=1)
        lone.lead()
        ticket = lone.core.barrier(lone.now)
        assert lone.take().barriers == [BarrierOutcome(ticket, 2)]

    def test_a_follower_answers_with_the_same_context(self) -> None:
        lone = Lone()
        assert only(HeartbeatReply, lone.step(beat(lone, context=4)).messages).context == 4

    def test_vouching_asks_for_no_answer(self) -> None:
        lone = Lone()
        assert not lone.step(beat(lone)).messages
        assert lone.core.leader == 2


class TestPreVote:
    """Thesis 9.6, preventing disruptions when a server rejoins."""

    def test_asking_changes_no_term_and_no_vote(self) -> None:
        lone = Lone(term=3, vote=2)
        ready = lone.wait(ELECTION)
        assert ready.hard_state is None
        assert {request.term for request in all_of(RequestVote, ready.messages)} == {4}
        assert (lone.core.term, lone.core.vote) == (3, 2)

    def test_being_asked_changes_no_term_no_vote_and_no_wait(self) -> None:
        lone = Lone(term=3, vote=3)
        lone.now = 500
        ready = lone.step(lone.asks(2, (1, 0), pre=True))
        assert only(VoteReply, ready.messages_after).granted
        assert ready.hard_state is None
        assert lone.core.deadline == ELECTION

    @pytest.mark.parametrize(
        ("last", "term", "granted"), [((1, 0), 4, False), ((2, 1), 3, False), ((2, 1), 4, True)]
    )
    def test_granted_like_a_vote_would_be(
        self, last: tuple[int, int], term: int, granted: bool
    ) -> None:
        lone = Lone([1], term=3)
        ready = lone.step(lone.asks(2, last, term=term, pre=True))
        assert only(VoteReply, ready.messages + ready.messages_after).granted is granted

    def test_refused_while_a_leader_is_heard(self) -> None:
        lone = Lone(term=3)
        lone.step(lone.append((1, 0)))
        ready = lone.step(lone.asks(3, (9, 3), pre=True))
        assert not only(VoteReply, ready.messages).granted

    def test_granted_to_several(self) -> None:
        lone = Lone(term=3)
        ready = lone.step(lone.asks(2, (1, 0), pre=True), lone.asks(3, (1, 0), pre=True))
        assert [reply.granted for reply in all_of(VoteReply, ready.messages_after)] == [True, True]

    def test_a_majority_of_refusals_ends_it(self) -> None:
        lone = Lone(term=3)
        lone.wait(ELECTION)
        lone.step(*(VoteReply(GROUP, peer, 1, 3, False, pre=True) for peer in (2, 3)))
        assert (lone.core.role, lone.core.term) == (Role.FOLLOWER, 3)

    def test_a_refusal_from_a_later_term_is_learnt_from(self) -> None:
        lone = Lone(term=3)
        lone.wait(ELECTION)
        lone.step(VoteReply(GROUP, 2, 1, 8, False, pre=True))
        assert (lone.core.role, lone.core.term) == (Role.FOLLOWER, 8)

    def test_who_refused_is_asked_again(self) -> None:
        """Its lease may have run out meanwhile."""
        lone = Lone(term=3)
        lone.wait(ELECTION)
        lone.step(VoteReply(GROUP, 2, 1, 3, False, pre=True))
        assert {m.to for m in all_of(RequestVote, lone.wait(RETRANSMIT).messages)} == {2, 3}
        lone.step(VoteReply(GROUP, 2, 1, 4, True, pre=True))
        assert (lone.core.role, lone.core.term) == (Role.CANDIDATE, 4)

    @pytest.mark.parametrize("pre", [False, True])
    def test_answers_to_an_earlier_question_do_not_elect(self, pre: bool) -> None:
        """In this term it asked about term 4; votes and answers of term 3 are about another."""
        lone = Lone(term=3)
        lone.wait(ELECTION)
        lone.step(*(VoteReply(GROUP, peer, 1, 3, True, pre) for peer in (2, 3)))
        assert lone.core.role is Role.PRE_CANDIDATE

    def test_a_late_refusal_takes_no_grant_back(self) -> None:
        lone = Lone(term=3, voters=5)
        lone.wait(ELECTION)
        lone.step(*(VoteReply(GROUP, 2, 1, term, term > 3, pre=True) for term in (4, 3)))
        lone.step(VoteReply(GROUP, 3, 1, 4, True, pre=True))
        assert lone.core.role is Role.CANDIDATE


class TestRetransmission:
    """Raft retries AppendEntries indefinitely (paper 5.3); here without waste."""

    def test_unanswered_entries_are_asked_for_without_bytes(self) -> None:
        lone = leader()
        lone.propose(1)
        lone.step(lone.matched(2, 3))
        lone.wait(RETRANSMIT)
        probe = only(AppendEntries, lone.wait(RETRANSMIT).messages)
        assert (probe.to, probe.prev_index, probe.last_index) == (3, 3, 3)

    def test_an_idle_group_has_no_timer_but_check_quorum(self) -> None:
        lone = leader()
        lone.wait(RETRANSMIT)
        assert lone.core.deadline == ELECTION + ELECTION
        assert not lone.core.has_ready()

    def test_a_late_clock_does_not_send_twice(self) -> None:
        """`propose` tells no time: the timer may be armed in the past, and comes at once."""
        lone = leader()
        lone.wait(RETRANSMIT)
        lone.now += 5 * RETRANSMIT
        lone.propose(1)
        deadline = lone.core.deadline
        assert deadline is not None
        assert deadline < lone.now
        lone.core.advance(lone.now)
        assert not lone.take().messages
        assert lone.core.deadline == lone.now + RETRANSMIT
