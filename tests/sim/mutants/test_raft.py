"""Cores without one of their safety mechanisms: each does what its name says.

The core of the broker, asked the same, does not. What a whole cluster makes of it is the sweep of
mutants that is told in `test_mutants.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.raft.messages import AppendReply, RequestVote, VoteReply
from ottla.raft.raft_log import bootstrap
from ottla.raft.roles import Role
from ottla.raft.types import EntryKind, HardState, Proposal
from ottla.sim.mutants.mutant import NO_MUTANTS, Mutant
from ottla.sim.mutants.raft import core_without
from raft_lone import CONFIG, ELECTION, Lone, NoJitter, all_of


def _votes_granted(lone: Lone, *messages: RequestVote) -> list[bool]:
    ready = lone.step(*messages)
    replies = all_of(VoteReply, [*ready.messages, *ready.messages_after])
    return [each.granted for each in replies]


def acks_before_sync(lone: Lone) -> bool:
    """A success leaves at once."""
    ready = lone.step(lone.append((3, 1), [1]), hold=True)
    return bool(all_of(AppendReply, ready.messages))


def leader_counts_unsynced(lone: Lone) -> bool:
    """The leader counts its own entry, which its disk does not have."""
    lone.lead()
    lone.propose(1, hold=True)
    lone.step(lone.matched(2, lone.core.last_index), hold=True)
    return lone.core.commit == lone.core.last_index


def votes_twice(lone: Lone) -> bool:
    """Two candidates have its vote in one term."""
    asked = [lone.asks(who, (9, 1), term=2) for who in (2, 3)]
    return _votes_granted(lone, *asked) == [True, True]


def votes_for_shorter_logs(lone: Lone) -> bool:
    """A candidate whose log ends earlier has its vote."""
    return _votes_granted(lone, lone.asks(2, (1, 0), term=2)) == [True]


def counts_old_terms(lone: Lone) -> bool:
    """A majority holds an entry of an earlier term, which is committed for that."""
    lone.lead()
    lone.step(lone.matched(2, 3))
    return lone.core.commit == 3


def no_match_check(lone: Lone) -> bool:
    """Entries are appended behind one that is not the leader's."""
    lone.step(lone.append((3, 2), [2], term=2))
    return lone.core.last_index == 4


def any_term_appends(lone: Lone) -> bool:
    """What was admitted in another term gets its place."""
    lone.lead()
    return lone.core.propose([Proposal(EntryKind.BATCH, b"x")], lone.core.term - 1) is not None


def keeps_leading(lone: Lone) -> bool:
    """It leads on when it is told to resign."""
    lone.lead()
    lone.core.step_down(lone.now)
    return lone.core.role is Role.LEADER


def syncs_by_index(lone: Lone) -> bool:
    """The write of an entry that was replaced counts for the one in its place."""
    first = lone.step(lone.append((3, 1), [1]), hold=True)
    lone.step(lone.append((3, 1), [2], term=2, sender=3), hold=True)
    lone.finish(first)
    return lone.core.log.persisted == 4


def stale_leaders_heard(lone: Lone) -> bool:
    """Entries of a deposed leader take the place of committed ones."""
    lone.step(lone.append((3, 1), [2], term=2, commit=4))
    assert lone.core.commit == 4
    lone.step(lone.append((3, 1), [1, 1], term=1))
    return lone.core.log.term_at(4) == 1 and lone.core.last_index == 5


def no_pre_vote(lone: Lone) -> bool:
    """It stands for election without asking first, and raises the term."""
    lone.wait(ELECTION)
    return lone.core.term == 2


def no_check_quorum(lone: Lone) -> bool:
    """It leads on though it hears of nobody."""
    lone.lead()
    lone.wait(3 * ELECTION)
    return lone.core.role is Role.LEADER


def no_lease(lone: Lone) -> bool:
    """It votes though its leader is alive."""
    lone.step(lone.append((3, 1)))
    return _votes_granted(lone, lone.asks(3, (9, 1), term=2)) == [True]


def commit_ahead(lone: Lone) -> bool:
    """All of its log counts as committed when it starts again."""
    return lone.core.commit == 3


@pytest.mark.parametrize(
    ("mutant", "shows"),
    [
        (Mutant.ACKS_BEFORE_SYNC, acks_before_sync),
        (Mutant.ACKS_BEFORE_SYNC, leader_counts_unsynced),
        (Mutant.VOTES_TWICE, votes_twice),
        (Mutant.VOTES_FOR_SHORTER_LOGS, votes_for_shorter_logs),
        (Mutant.COUNTS_OLD_TERMS, counts_old_terms),
        (Mutant.NO_MATCH_CHECK, no_match_check),
        (Mutant.ANY_TERM_APPENDS, any_term_appends),
        (Mutant.KEEPS_LEADING, keeps_leading),
        (Mutant.SYNCS_BY_INDEX, syncs_by_index),
        (Mutant.STALE_LEADERS_HEARD, stale_leaders_heard),
        (Mutant.NO_PRE_VOTE, no_pre_vote),
        (Mutant.NO_PRE_VOTE, no_check_quorum),
        (Mutant.NO_PRE_VOTE, no_lease),
        (Mutant.COMMIT_AHEAD, commit_ahead),
    ],
)
def test_a_mutant_shows_what_the_core_does_not(mutant: Mutant, shows: Callable[[Lone], bool]):
    assert shows(Lone([1, 1], make_core=core_without(frozenset({mutant}))))
    assert not shows(Lone([1, 1], make_core=core_without(NO_MUTANTS)))


def test_a_fresh_log_is_not_ahead():
    """Entry 1 says who votes; whoever begins with it has not been started again."""
    log, _ = bootstrap(range(1, 4))
    make = core_without(frozenset({Mutant.COMMIT_AHEAD}))
    core = make(CONFIG, hard_state=HardState(), log=log, jitter=NoJitter(), now=0)
    assert core.commit == 0


def test_the_short_way_of_a_follower_is_shut():
    """It knows of no mutant: everything has to take the general way."""
    lone = Lone([1, 1], make_core=core_without(frozenset({Mutant.VOTES_TWICE})))
    lone.step(lone.append((3, 1)))
    assert lone.core.follow(lone.append((3, 1), [1]), lone.now) is None
    plain = Lone([1, 1])
    plain.step(plain.append((3, 1)))
    assert plain.core.follow(plain.append((3, 1), [1]), plain.now) is not None
