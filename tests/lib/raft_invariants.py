"""Raft's safety properties (paper, figure 3), checked after every effect of every member.

`Watch` is told what members hand out and what their disks hold. It keeps an independent record of
who led, who voted, what was appended and what was committed, and asserts:

* election safety: one leader per term,
* one vote per term, across restarts,
* log matching: an (index, term) names one payload and one predecessor, everywhere and for ever,
* leader completeness: a leader holds every entry committed in an earlier term,
* state machine safety: one payload per committed index,
* commit never falls (within a life), never exceeds the log, and is never truncated,
* what a core believes to be on its disk is there, and no write under way will replace it,
* a barrier that holds covers everything that anyone knew to be committed when it was asked for,
* a leader's commit is durable on a majority of disks; terms on disk never fall.
"""

from __future__ import annotations

from ottla.raft.messages import VoteReply
from ottla.raft.ready import Ready
from ottla.raft.roles import Role
from ottla.raft.types import AppendRange, Entry, LogIndex, NodeId, Term
from raft_world import Member


class Watch:
    """Sees everything and asserts; one per world."""

    def __init__(self) -> None:
        self.leaders: dict[Term, NodeId] = {}
        self.votes: dict[tuple[NodeId, Term], NodeId] = {}
        self.terms: dict[NodeId, Term] = {}
        self.appended: dict[tuple[LogIndex, Term], tuple[bytes, Term | None]] = {}
        self.committed: dict[LogIndex, tuple[Entry, Term]] = {}
        """Each committed entry, and the term of the member that first knew."""
        self.commits: dict[NodeId, LogIndex] = {}
        self.last_committed: LogIndex = 0
        self.asked: dict[tuple[NodeId, int], LogIndex] = {}
        """What anyone knew to be committed when a barrier was asked for, by member and ticket."""

    def on_ready(self, member: Member, ready: Ready) -> None:
        """A member hands out effects. Its `view` has them already."""
        for appended in ready.append:
            self._see_append(member, appended)
        self._see_votes(member, ready)
        if ready.soft is not None and ready.soft.role is Role.LEADER:
            self._see_leader(member, ready.soft.term)
        self._see_commit(member, ready)
        self._see_persisted(member)
        for outcome in ready.barriers:
            known = self.asked.pop((member.node, outcome.ticket), 0)
            if outcome.index is not None:
                assert outcome.index >= known, f"{member.node}: {outcome}, {known} was committed"

    def on_barrier(self, node: NodeId, ticket: int) -> None:
        """A member was asked to prove that it leads."""
        self.asked[node, ticket] = self.last_committed

    def on_durable(self, member: Member, ready: Ready) -> None:
        """A write finished; what waited for it leaves next, unless the member crashes."""
        hard_state = member.disk.hard_state
        before = self.terms.get(member.node, 0)
        assert hard_state.term >= before, f"{member.node}: term {before} to {hard_state.term}"
        self.terms[member.node] = hard_state.term
        if hard_state.vote:
            self._see_vote(member.node, hard_state.term, hard_state.vote)
        for message in ready.messages_after:
            if isinstance(message, VoteReply) and message.granted and not message.pre:
                self._see_vote(member.node, message.term, message.to)
                behind = message.term < hard_state.term
                durable = message.term == hard_state.term and message.to == hard_state.vote
                assert behind or durable, f"{member.node}: {message} leaves, disk: {hard_state}"

    def on_restart(self, member: Member) -> None:
        """Commit is learnt again after a restart. In a group of one, whose vote is no one's but
        its own, what was lost with the vote never was: its term may be used again."""
        self.commits[member.node] = member.core.commit
        if len(member.world.members) == 1:
            lost = [place for place in self.appended if not member.disk.holds(*place)]
            for place in lost:
                del self.appended[place]

    def _see_append(self, member: Member, appended: AppendRange) -> None:
        commit = self.commits.get(member.node, 0)
        assert appended.first > commit, f"{member.node}: writes {appended.first}, commit {commit}"
        for entry in appended.entries:
            before = member.core.log.term_at(entry.index - 1)
            said = (bytes(entry.payload), before)  # type: ignore[call-overload]
            known = self.appended.setdefault((entry.index, entry.term), said)
            assert known[0] == said[0], (
                f"{entry.index}/{entry.term} is {known[0]!r} and {said[0]!r}"
            )
            if known[1] is not None and before is not None and entry is appended.entries[-1]:
                assert known[1] == before, (
                    f"{entry.index}/{entry.term} follows {known[1]}, {before}"
                )

    def _see_persisted(self, member: Member) -> None:
        index = member.core.log.persisted
        term = member.core.log.term_at(index)
        if term is not None:  # else a snapshot took its place and is still being written
            assert member.disk.holds(index, term), f"{member.node}: {index}/{term} is not on disk"
        for write in member.writes:
            for appended in write.ready.append:
                assert appended.first > index, f"{member.node}: {index} will be overwritten"

    def _see_votes(self, member: Member, ready: Ready) -> None:
        for message in ready.messages:
            early = isinstance(message, VoteReply) and message.granted
            assert not early, f"{member.node}: a vote left before it was durable"

    def _see_vote(self, node: NodeId, term: Term, candidate: NodeId) -> None:
        known = self.votes.setdefault((node, term), candidate)
        assert known == candidate, f"{node} voted for {known} and {candidate} in term {term}"

    def _see_leader(self, member: Member, term: Term) -> None:
        known = self.leaders.setdefault(term, member.node)
        assert known == member.node, f"{known} and {member.node} lead term {term}"
        log = member.core.log
        for index, (entry, committed_in) in self.committed.items():
            if committed_in < term and index >= log.first_index - 1:
                found = log.term_at(index)
                assert found == entry.term, (
                    f"leader {member.node} of term {term} has {found} at {index}, not {entry.term}"
                )

    def _see_commit(self, member: Member, ready: Ready) -> None:
        before = self.commits.get(member.node, 0)
        assert ready.commit >= before, f"{member.node}: commit {before} to {ready.commit}"
        last = member.core.last_index
        assert ready.commit <= last, f"{member.node}: commit {ready.commit}, log to {last}"
        for index in range(before + 1, ready.commit + 1):
            entry = member.view.entries.get(index)
            if entry is not None:  # else a snapshot stands for it
                known, _ = self.committed.setdefault(index, (entry, member.core.term))
                assert known == entry, f"{index} is {known} and, at {member.node}, {entry}"
        self.commits[member.node] = ready.commit
        self.last_committed = max(self.last_committed, ready.commit)
        if ready.commit > before and member.core.role is Role.LEADER:
            self._see_quorum(member, ready.commit)

    def _see_quorum(self, member: Member, commit: LogIndex) -> None:
        term = member.core.log.term_at(commit)
        assert term == member.core.term, f"{commit} of term {term} committed by counting"
        members = member.world.members.values()
        holders = [each.node for each in members if each.disk.holds(commit, term)]
        assert 2 * len(holders) > len(members), f"{commit}/{term} is durable on {holders} only"
