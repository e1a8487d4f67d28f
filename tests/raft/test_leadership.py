"""Timers and answers of a leader: when it wants to be called, and what it never counts.

The sentences of the thesis are in `test_thesis.py`; here is what has to hold between them, on a
leader that is idle, so that no other timer happens to run.
"""

from ottla.raft.messages import Heartbeat, HeartbeatReply, TimeoutNow
from ottla.raft.ready import BarrierOutcome
from raft_lone import ELECTION, GROUP, RETRANSMIT, Lone, all_of, only


def idle(voters: int = 3) -> Lone:
    """A leader that waits for nothing: its first entry is everywhere, the timer has run out."""
    lone = Lone(voters=voters)
    lone.lead()
    lone.step(*(lone.matched(peer, 2) for peer in lone.peers))
    lone.wait(RETRANSMIT)
    assert lone.core.work_deadline is None
    return lone


def answer(lone: Lone, sender: int, context: int = 0) -> HeartbeatReply:
    return HeartbeatReply(GROUP, sender, 1, lone.core.term, context)


class TestTimers:
    def test_a_barrier_is_asked_again_and_ends_in_time(self) -> None:
        lone = idle(voters=5)
        asked = lone.now
        ticket = lone.core.barrier(asked)
        lone.take()
        assert lone.core.work_deadline == asked + RETRANSMIT
        lone.step(answer(lone, 2, ticket))
        again = lone.wait(RETRANSMIT).messages
        assert {m.to for m in all_of(Heartbeat, again)} == {3, 4, 5}, "2 has answered"
        for _ in range(8):
            lone.step(answer(lone, 2), answer(lone, 3))
            lone.wait(RETRANSMIT + 7)
        lone.now = asked + ELECTION - 1
        lone.core.advance(lone.now)
        lone.take()
        assert lone.core.work_deadline == asked + ELECTION
        assert lone.wait(1).barriers == [BarrierOutcome(ticket, None)]

    def test_a_transfer_is_ordered_again_and_ends_in_time(self) -> None:
        lone = idle()
        begun = lone.now
        assert lone.core.transfer(3, begun)
        assert only(TimeoutNow, lone.take().messages).to == 3
        assert lone.core.work_deadline == begun + RETRANSMIT
        lone.step(answer(lone, 2))
        lone.now = begun + ELECTION - 1
        lone.core.advance(lone.now)
        lone.take()
        assert lone.core.work_deadline == begun + ELECTION
        lone.wait(1)
        assert lone.core.transferring_to == 0

    def test_a_transfer_that_waits_for_a_dead_successor_ends_in_time(self) -> None:
        lone = idle()
        lone.propose(1)
        lone.step(lone.matched(2, 3))
        begun = lone.now
        assert lone.core.transfer(3, begun)
        assert not all_of(TimeoutNow, lone.take().messages)
        while lone.core.transferring_to:
            due = lone.core.work_deadline
            assert due is not None
            assert due <= begun + ELECTION
            lone.step(answer(lone, 2))
            lone.wait(due - lone.now)
        assert lone.now == begun + ELECTION


class TestBarrierAnswers:
    def test_an_answer_to_a_barrier_that_was_never_asked_counts_for_nothing(self) -> None:
        lone = idle()
        lone.step(answer(lone, 2, context=99), answer(lone, 3, context=99))
        ticket = lone.core.barrier(lone.now)
        assert not lone.take().barriers
        assert lone.step(answer(lone, 3, ticket)).barriers == [BarrierOutcome(ticket, 2)]
