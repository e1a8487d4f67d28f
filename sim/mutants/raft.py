"""`MutatedCore`: a member of a Raft group without one of its safety mechanisms.

Most mutants change the answer to one question that the core asks its state (`ottla.raft.state`).
The others change what one input does, or when an answer may leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, cast

from ottla.raft import replication
from ottla.raft.config import JitterSource, RaftConfig
from ottla.raft.core import RaftCore
from ottla.raft.messages import AppendEntries, AppendReply, HeartbeatReply, Message, RequestVote
from ottla.raft.quorum import reached
from ottla.raft.raft_log import RaftLog
from ottla.raft.ready import Ready
from ottla.raft.state import Follower, Leader, RaftState
from ottla.raft.types import NO_NODE, HardState, LogIndex, Micros, NodeId, Proposal, Term
from ottla.sim.mutants.mutant import NO_MUTANTS, Mutant, Mutants


class MutatedState(RaftState):
    """A member's state that gives other answers."""

    __slots__ = ("mutants",)

    mutants: Mutants

    def asks_first(self) -> bool:
        """As `RaftState.asks_first`, but an election may begin without a pre-vote."""
        return Mutant.NO_PRE_VOTE not in self.mutants and super().asks_first()

    def holds_lease(self, at: Micros) -> bool:
        """As `RaftState.holds_lease`, but a live leader may be no reason to refuse."""
        return Mutant.NO_PRE_VOTE not in self.mutants and super().holds_lease(at)

    def has_vote_for(self, candidate: NodeId) -> bool:
        """As `RaftState.has_vote_for`, but a given vote may be given again."""
        return Mutant.VOTES_TWICE in self.mutants or super().has_vote_for(candidate)

    def is_up_to_date(self, message: RequestVote) -> bool:
        """As `RaftState.is_up_to_date`, but any log may count."""
        return Mutant.VOTES_FOR_SHORTER_LOGS in self.mutants or super().is_up_to_date(message)

    def matches(self, message: AppendEntries) -> bool:
        """As `RaftState.matches`, but any preceding entry may match."""
        if Mutant.NO_MATCH_CHECK in self.mutants and message.prev_index <= self.log.last_index:
            return True
        return super().matches(message)

    def held_by_majority(self, leader: Leader) -> LogIndex:
        """As `RaftState.held_by_majority`, but the leader may count entries that its disk lacks."""
        if Mutant.ACKS_BEFORE_SYNC not in self.mutants:
            return super().held_by_majority(leader)
        return reached([*(each.match for each in leader.progress.values()), self.log.last_index])

    def commits_by_counting(self, leader: Leader, index: LogIndex) -> bool:
        """As `RaftState.commits_by_counting`, but for entries of earlier terms, too."""
        if Mutant.COUNTS_OLD_TERMS in self.mutants:
            return True
        return super().commits_by_counting(leader, index)


class MutatedCore(RaftCore):
    """See the module's docstring."""

    __slots__ = ("_mutants",)

    state_type: ClassVar[type[RaftState]] = MutatedState

    def __init__(
        self,
        config: RaftConfig,
        *,
        hard_state: HardState,
        log: RaftLog,
        jitter: JitterSource,
        now: Micros,
        mutants: Mutants = NO_MUTANTS,
    ):
        super().__init__(config, hard_state=hard_state, log=log, jitter=jitter, now=now)
        self._mutants = mutants
        cast(MutatedState, self._state).mutants = mutants
        if Mutant.COMMIT_AHEAD in mutants and log.last_index > 1:
            # Not entry 1 of a fresh log: it only names the voters, and such a log was never
            # restarted.
            self._state.commit_to(log.last_index)

    def step(self, message: Message, at: Micros) -> None:
        """As `RaftCore.step`, but a deposed leader may be heard as if it still led, and heartbeats
        may not be heard by a leader."""
        beat = isinstance(message, HeartbeatReply) and not message.context
        if beat and Mutant.DEAF_LEADERS in self._mutants:
            return
        if isinstance(message, AppendEntries) and Mutant.STALE_LEADERS_HEARD in self._mutants:
            self._hear(message, at)
        else:
            super().step(message, at)

    def _hear(self, message: AppendEntries, at: Micros) -> None:
        """Take entries of any term, and treat committed entries as if they were not."""
        state = self._state
        if message.term < state.term:
            message = replace(message, term=state.term)
        committed = state.commit
        state.commit = min(committed, message.prev_index)
        super().step(message, at)
        state.commit = max(committed, state.commit)

    def follow(self, message: AppendEntries, at: Micros) -> AppendReply | None:
        """Always the general way, which lacks the mechanism."""
        return None

    def advance(self, now: Micros) -> None:
        """As `RaftCore.advance`, but a leader may never check whether a majority hears it."""
        role = self._state.role
        if Mutant.NO_PRE_VOTE in self._mutants and isinstance(role, Leader):
            role.check_at = None
        super().advance(now)

    def propose(self, proposals: Sequence[Proposal], expected_term: Term) -> LogIndex | None:
        """As `RaftCore.propose`, but in any term."""
        if Mutant.ANY_TERM_APPENDS in self._mutants:
            expected_term = self.term
        return super().propose(proposals, expected_term)

    def step_down(self, now: Micros) -> None:
        """As `RaftCore.step_down`, but a leader may stay although an outcome is uncertain."""
        if Mutant.KEEPS_LEADING not in self._mutants:
            super().step_down(now)

    def persisted(self, index: LogIndex, term: Term, now: Micros) -> None:
        """As `RaftCore.persisted`, but may count for whatever entry is at the index by now."""
        super().persisted(index, term, now)
        if Mutant.SYNCS_BY_INDEX in self._mutants:
            self._believe_durable(index)

    def _believe_durable(self, index: LogIndex) -> None:
        state, role = self._state, self._state.role
        log, config = state.log, state.config
        log.persisted = max(log.persisted, min(index, log.last_index))
        if isinstance(role, Leader):
            replication.advance_commit(state, role)
        elif isinstance(role, Follower) and role.leader != NO_NODE:
            group, me, term = config.group, config.node, state.term
            state.outbox.send(AppendReply(group, me, role.leader, term, True, log.persisted))

    def ready(self) -> Ready:
        """As `RaftCore.ready`, but a success may leave before its entries are on the disk."""
        ready = super().ready()
        if Mutant.ACKS_BEFORE_SYNC in self._mutants:
            early = [each for each in ready.messages_after if _is_success(each)]
            ready.messages += early
            ready.messages_after = [each for each in ready.messages_after if each not in early]
        return ready


def _is_success(message: Message) -> bool:
    return isinstance(message, AppendReply) and message.success


def core_without(mutants: Mutants) -> Callable[..., RaftCore]:
    """What makes the cores of a node with these mutants."""
    return partial(MutatedCore, mutants=mutants) if mutants else RaftCore
