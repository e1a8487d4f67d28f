"""The table of roles: every role with every trigger leads somewhere or is named impossible.

Then the core is made to walk each row by its inputs, so that a row nobody can reach, or one that
the code does not follow, fails.
"""

from itertools import product

import pytest

from ottla.raft.messages import Heartbeat, RequestVote, TimeoutNow, VoteReply
from ottla.raft.roles import TRANSITIONS, Role, TermRule, Trigger, find_transition
from raft_lone import ELECTION, GROUP, Lone

IMPOSSIBLE = {
    Role.FOLLOWER: {
        Trigger.PRE_VOTE_WON: "counts no answers",
        Trigger.PRE_VOTE_LOST: "counts no answers",
        Trigger.ELECTION_WON: "counts no votes",
        Trigger.ELECTION_LOST: "counts no votes",
        Trigger.VOTE_GRANTED: "votes, and is a follower already",
        Trigger.LEADER_HEARD: "hears leaders, and is a follower already",
        Trigger.QUORUM_LOST: "has none to lose",
        Trigger.RESIGNED: "has no office",
    },
    Role.PRE_CANDIDATE: {
        Trigger.FIRST_ELECTION: "skips the pre-vote, so it is none",
        Trigger.ELECTION_WON: "counts answers, not votes",
        Trigger.ELECTION_LOST: "counts answers, not votes",
        Trigger.QUORUM_LOST: "has none to lose",
        Trigger.RESIGNED: "has no office",
    },
    Role.CANDIDATE: {
        Trigger.FIRST_ELECTION: "is in one",
        Trigger.TRANSFER_ORDERED: "of its term no leader is known who could order it",
        Trigger.PRE_VOTE_WON: "asked before",
        Trigger.PRE_VOTE_LOST: "asked before",
        Trigger.VOTE_GRANTED: "its vote is its own",
        Trigger.QUORUM_LOST: "has none to lose",
        Trigger.RESIGNED: "has no office",
    },
    Role.LEADER: {
        Trigger.ELECTION_TIMEOUT: "waits for nobody",
        Trigger.FIRST_ELECTION: "won one",
        Trigger.TRANSFER_ORDERED: "orders them itself",
        Trigger.PRE_VOTE_WON: "asks nobody",
        Trigger.PRE_VOTE_LOST: "asks nobody",
        Trigger.ELECTION_WON: "has won",
        Trigger.ELECTION_LOST: "has won",
        Trigger.VOTE_GRANTED: "its vote is its own",
        Trigger.LEADER_HEARD: "there is no other in its term",
    },
}


@pytest.mark.parametrize(("role", "trigger"), list(product(Role, Trigger)))
def test_every_pair_has_one_row_or_a_reason_for_none(role: Role, trigger: Trigger) -> None:
    rows = [row for row in TRANSITIONS if (row.source, row.trigger) == (role, trigger)]
    assert len(rows) + (trigger in IMPOSSIBLE[role]) == 1
    assert find_transition(role, trigger) is (rows[0] if rows else None)


def test_terms_move_as_the_trigger_demands() -> None:
    """A term rises with an election, is adopted from a message, or stays; all candidates but
    pre-candidates are made by a rise."""
    for row in TRANSITIONS:
        assert (row.term is TermRule.ADOPT) == (row.trigger is Trigger.HIGHER_TERM)
        assert (row.term is TermRule.NEXT) == (row.target is Role.CANDIDATE)
        assert row.reason
        assert row.origin


def test_leaders_are_made_by_elections_only() -> None:
    assert [row.source for row in TRANSITIONS if row.target is Role.LEADER] == [Role.CANDIDATE]


def follower() -> Lone:
    return Lone(term=1)


def pre_candidate() -> Lone:
    lone = Lone(term=1)
    lone.wait(ELECTION)
    return lone


def candidate() -> Lone:
    lone = pre_candidate()
    lone.step(VoteReply(GROUP, 2, 1, 2, True, pre=True))
    return lone


def leader() -> Lone:
    lone = candidate()
    lone.step(VoteReply(GROUP, 2, 1, 2, True))
    return lone


MAKE = {
    Role.FOLLOWER: follower,
    Role.PRE_CANDIDATE: pre_candidate,
    Role.CANDIDATE: candidate,
    Role.LEADER: leader,
}


def pull(lone: Lone, trigger: Trigger) -> None:
    """Make the trigger happen to a core, by its inputs."""
    core, term = lone.core, lone.core.term
    pre = core.role is Role.PRE_CANDIDATE
    if trigger is Trigger.ELECTION_TIMEOUT:
        lone.wait(ELECTION)
    elif trigger is Trigger.TRANSFER_ORDERED:
        lone.step(TimeoutNow(GROUP, 2, 1, term))
    elif trigger in (Trigger.PRE_VOTE_WON, Trigger.ELECTION_WON):
        lone.step(VoteReply(GROUP, 2, 1, term + pre, True, pre))
    elif trigger in (Trigger.PRE_VOTE_LOST, Trigger.ELECTION_LOST):
        lone.step(*(VoteReply(GROUP, peer, 1, term, False, pre) for peer in (2, 3)))
    elif trigger is Trigger.VOTE_GRANTED:
        lone.step(RequestVote(GROUP, 2, 1, term, 9, term))
    elif trigger is Trigger.LEADER_HEARD:
        lone.step(Heartbeat(GROUP, 2, 1, term, 0))
    elif trigger is Trigger.HIGHER_TERM:
        lone.step(Heartbeat(GROUP, 2, 1, term + 1, 0))
    elif trigger is Trigger.QUORUM_LOST:
        lone.wait(ELECTION)
    elif trigger is Trigger.RESIGNED:
        core.step_down(lone.now)


@pytest.mark.parametrize(
    "row",
    [row for row in TRANSITIONS if row.trigger is not Trigger.FIRST_ELECTION],
    ids=lambda row: f"{row.source.value}: {row.trigger.value}",
)
def test_the_core_moves_along_each_row(row) -> None:
    lone = MAKE[row.source]()
    assert lone.core.role is row.source
    before = lone.core.term
    pull(lone, row.trigger)
    assert lone.core.role is row.target
    assert lone.core.term - before == (row.term is not TermRule.KEEP)


def test_the_first_election_of_a_fresh_group_asks_nobody_first() -> None:
    lone = Lone(term=0)
    lone.core.campaign(0)
    assert (lone.core.role, lone.core.term) == (Role.CANDIDATE, 1)


def test_a_later_campaign_asks_first() -> None:
    lone = Lone(term=1)
    lone.core.campaign(0)
    assert (lone.core.role, lone.core.term) == (Role.PRE_CANDIDATE, 1)


def test_who_resigned_does_not_lead_that_term_again() -> None:
    lone = leader()
    term = lone.core.term
    lone.core.step_down(lone.now)
    lone.step(*(VoteReply(GROUP, peer, 1, term, True) for peer in (2, 3)))
    assert (lone.core.role, lone.core.term, lone.core.leader) == (Role.FOLLOWER, term, 0)
    assert lone.core.propose([], term) is None
