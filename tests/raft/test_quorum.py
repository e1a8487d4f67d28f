"""Majorities and the commit rule against a second, deliberately dumb implementation."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.raft.quorum import VoteResult, count_votes, majority, reached
from raft_lone import Lone


def quorums(voters: list[int]) -> list[tuple[int, ...]]:
    """Every majority, written out."""
    return [
        chosen
        for size in range(len(voters) + 1)
        for chosen in combinations(voters, size)
        if 2 * size > len(voters)
    ]


def test_majority_is_the_smallest_number_that_overlaps() -> None:
    for voters in range(1, 12):
        assert 2 * majority(voters) > voters
        assert 2 * (majority(voters) - 1) <= voters


@pytest.mark.slow
@given(st.lists(st.integers(0, 12), min_size=1, max_size=7))
def test_reached_is_what_some_whole_quorum_has_reached(values: list[int]) -> None:
    voters = list(range(len(values)))
    best = max(min(values[voter] for voter in quorum) for quorum in quorums(voters))
    assert reached(values) == best


@pytest.mark.slow
@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=7))
def test_votes_are_won_lost_or_pending(answers: list[bool | None]) -> None:
    voters = list(range(1, len(answers) + 1))
    votes = {
        voter: answer for voter, answer in zip(voters, answers, strict=True) if answer is not None
    }
    won = any(all(votes.get(voter) for voter in quorum) for quorum in quorums(voters))
    possible = any(all(votes.get(voter, True) for voter in quorum) for quorum in quorums(voters))
    expected = VoteResult.WON if won else VoteResult.PENDING if possible else VoteResult.LOST
    assert count_votes(voters, votes) is expected


def test_votes_of_strangers_do_not_count() -> None:
    assert count_votes((1, 2, 3), {1: True, 8: True, 9: True}) is VoteResult.PENDING


@pytest.mark.slow
@given(
    terms=st.lists(st.integers(1, 3), max_size=5).map(sorted),
    own=st.integers(0, 4),
    reports=st.lists(st.tuples(st.integers(2, 5), st.integers(0, 14)), max_size=12),
)
def test_commit_rule_against_figure_2_word_by_word(
    terms: list[int], own: int, reports: list[tuple[int, int]]
) -> None:
    """There exists an N > commitIndex, a majority of matchIndex[i] >= N, and log[N].term ==
    currentTerm: searched from the end, over all quorums, with match kept in a dict."""
    lone = Lone(terms, term=3, voters=5)
    lone.lead()
    if own:
        lone.propose(*[1] * own)
    log, last = lone.core.log, lone.core.last_index
    match = {1: last, 2: 0, 3: 0, 4: 0, 5: 0}
    commit = 0
    for follower, index in reports:
        lone.step(lone.matched(follower, index))
        if index <= last:
            match[follower] = max(match[follower], index)
        for n in range(last, commit, -1):
            held = any(all(match[v] >= n for v in quorum) for quorum in quorums(list(match)))
            if held and log.term_at(n) == lone.core.term:
                commit = n
                break
        assert lone.core.commit == commit
