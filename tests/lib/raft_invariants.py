"""Raft's safety properties (paper, figure 3), checked after every effect of every member.

`Watch` is told what members hand out and what their disks hold. It keeps an independent record of
who led, who voted, what was appended and what was committed, and asserts:

* election safety: one leader per term,
* one vote per term, across restarts,
* log matching: an (index, term) names one payload and one predecessor, everywhere and for ever,
* leader completeness: a leader holds every entry committed in an earlier term,
* state machine safety: one payload per committed index,
* commit never falls (within a life), never exceeds the log, and is never truncated,
* a leader only appends: it never replaces what it wrote in its term,
* what a core believes to be on its disk is there, and no write under way will replace it,
* what a leader believes a follower to hold is on that follower's disk,
* nothing that promises leaves before it is durable: votes, requests for votes, acknowledgements,
  and whatever a leader says in its term,
* a leader that waits for an answer has a timer,
* a barrier that holds covers everything that anyone knew to be committed when it was asked for,
* a leader's commit is durable on a majority of disks; terms on disk never fall.
"""

from __future__ import annotations

from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    Heartbeat,
    InstallSnapshot,
    Message,
    RequestVote,
    SnapshotReply,
    TimeoutNow,
    VoteReply,
)
from ottla.raft.progress import ProgressState
from ottla.raft.ready import Ready
from ottla.raft.roles import Role
from ottla.raft.types import AppendRange, Entry, HardState, LogIndex, NodeId, Term
from raft_member import Member


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
        self.ends: dict[NodeId, tuple[Term, LogIndex]] = {}
        """Of each leader: its term, and the last index it wrote in it."""
        self.last_committed: LogIndex = 0
        self.asked: dict[tuple[NodeId, int], LogIndex] = {}
        """What anyone knew to be committed when a barrier was asked for, by member and ticket."""

    def on_ready(self, member: Member, ready: Ready) -> None:
        """A member hands out effects. Its `view` has them already."""
        for appended in ready.append:
            self._see_append(member, appended)
        for message in ready.messages:
            self._see_early(member, message)
        if ready.soft is not None and ready.soft.role is Role.LEADER:
            self._see_leader(member, ready.soft.term)
        self._see_commit(member, ready)
        self._see_persisted(member)
        self._see_progress(member)
        self._see_timer(member)
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
            self._see_late(member, message)

    def on_restart(self, member: Member) -> None:
        """Commit is learnt again after a restart."""
        self.commits[member.node] = member.core.commit

    def _see_append(self, member: Member, appended: AppendRange) -> None:
        commit = self.commits.get(member.node, 0)
        assert appended.first > commit, f"{member.node}: writes {appended.first}, commit {commit}"
        if member.core.role is Role.LEADER:
            term, last = self.ends.get(member.node, (0, 0))
            if term == member.core.term:
                assert appended.first == last + 1, f"{member.node}: {appended.first} behind {last}"
            self.ends[member.node] = member.core.term, appended.entries[-1].index
        for entry in appended.entries:
            before = member.core.log.term_at(entry.index - 1)
            said = (bytes(entry.payload), before)
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

    def _see_early(self, member: Member, message: Message) -> None:
        """It leaves at once, so it promises nothing that is not on disk."""
        early = (
            (isinstance(message, VoteReply) and message.granted)
            or (isinstance(message, RequestVote) and not message.pre)
            or (isinstance(message, AppendReply) and message.success)
            or (isinstance(message, SnapshotReply) and message.done)
        )
        assert not early, f"{member.node}: {message} leaves before anything is durable"
        if isinstance(message, AppendEntries | Heartbeat | InstallSnapshot | TimeoutNow):
            elected = HardState(message.term, member.node)
            assert member.disk.hard_state == elected, (
                f"{member.node}: {message} leaves, disk: {member.disk.hard_state}"
            )

    def _see_late(self, member: Member, message: Message) -> None:
        """It leaves behind a write. What it says of an older term need not hold any more."""
        disk, hard_state = member.disk, member.disk.hard_state
        asks = isinstance(message, VoteReply | RequestVote) and message.pre
        assert asks or message.term <= hard_state.term, (
            f"{member.node}: {message} leaves, disk: {hard_state}"
        )
        if isinstance(message, VoteReply) and message.granted and not message.pre:
            self._see_vote(member.node, message.term, message.to)
            behind = message.term < hard_state.term
            durable = message.term == hard_state.term and message.to == hard_state.vote
            assert behind or durable, f"{member.node}: {message} leaves, disk: {hard_state}"
        if message.term == hard_state.term:
            match = message.match if isinstance(message, AppendReply) and message.success else 0
            if isinstance(message, SnapshotReply) and message.done:
                match = message.index  # one that refuses may leave behind a write, too
            assert match == 0 or disk.reaches(match), f"{member.node}: {message} is not on disk"

    def _see_progress(self, member: Member) -> None:
        """What followers confirmed in a term stays on their disks until a later term."""
        term, log = member.core.term, member.core.log
        for node, view in member.core.progress().items():
            disk = member.world.members[node].disk
            held = log.term_at(view.match) if view.match else None
            assert not view.match or disk.hard_state.term >= term
            if held is not None and disk.hard_state.term == term:
                assert disk.holds(view.match, held), (
                    f"{member.node} believes {node} to hold {view.match}/{held} in term {term}"
                )

    def _see_timer(self, member: Member) -> None:
        """Whatever a leader waits for will be asked for again."""
        waits = member.core.transferring_to or any(
            view.state is not ProgressState.REPLICATE or view.next - 1 > view.match
            for view in member.core.progress().values()
        )
        assert not waits or member.core.work_deadline is not None, f"{member.node} waits for ever"

    def _see_vote(self, node: NodeId, term: Term, candidate: NodeId) -> None:
        known = self.votes.setdefault((node, term), candidate)
        assert known == candidate, f"{node} voted for {known} and {candidate} in term {term}"

    def _see_leader(self, member: Member, term: Term) -> None:
        known = self.leaders.setdefault(term, member.node)
        assert known == member.node, f"{known} and {member.node} lead term {term}"
        written = member.disk.hard_state
        assert written == HardState(term, member.node), f"leads term {term}, on disk is {written}"
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
