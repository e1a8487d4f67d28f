"""Roles of a member and every legal move between them, as one table.

A role changes only by a row of `TRANSITIONS`: `state.py` asserts that the row exists. A row also
says what happens to the term, because the role and the term change together (Raft paper, section
5.1).

A missing row means that the trigger cannot occur in that role: only a candidate counts votes, only
a leader can lose its quorum. `tests/raft/test_roles.py` lists the missing rows, so that a row is
not left out by mistake. The diagram in the documentation is drawn from this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """The role of a member."""

    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    """Asks whether an election could be won, without touching its term (thesis 9.6)."""
    CANDIDATE = "candidate"
    LEADER = "leader"


class Trigger(Enum):
    """Why a role changes."""

    ELECTION_TIMEOUT = "election timeout"
    FIRST_ELECTION = "first election"
    TRANSFER_ORDERED = "transfer ordered"
    PRE_VOTE_WON = "pre-vote won"
    PRE_VOTE_LOST = "pre-vote lost"
    ELECTION_WON = "election won"
    ELECTION_LOST = "election lost"
    VOTE_GRANTED = "vote granted"
    LEADER_HEARD = "leader heard"
    HIGHER_TERM = "higher term"
    QUORUM_LOST = "quorum lost"
    RESIGNED = "resigned"


class TermRule(Enum):
    """What a transition does to the term."""

    KEEP = "keep"
    NEXT = "next"
    """Term + 1, with a vote for oneself."""
    ADOPT = "adopt"
    """Take the term of the message that caused the transition; no vote is given in it yet."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: in role `source`, `trigger` leads to `target`."""

    source: Role
    trigger: Trigger
    target: Role
    term: TermRule
    reason: str
    origin: str
    """Its source: paper section or figure, thesis section."""


TRANSITIONS: tuple[Transition, ...] = (
    Transition(
        Role.FOLLOWER,
        Trigger.ELECTION_TIMEOUT,
        Role.PRE_CANDIDATE,
        TermRule.KEEP,
        "no word from a leader: ask first, so that a cut-off member cannot inflate the term",
        "thesis 9.6",
    ),
    Transition(
        Role.FOLLOWER,
        Trigger.FIRST_ELECTION,
        Role.CANDIDATE,
        TermRule.NEXT,
        "in term 0 nobody leads, so nobody can be disturbed and nothing need be asked first",
        "paper 5.2",
    ),
    Transition(
        Role.FOLLOWER,
        Trigger.TRANSFER_ORDERED,
        Role.CANDIDATE,
        TermRule.NEXT,
        "the leader itself asks for the election: no pre-vote, and leases do not refuse it",
        "thesis 3.10",
    ),
    Transition(
        Role.FOLLOWER,
        Trigger.HIGHER_TERM,
        Role.FOLLOWER,
        TermRule.ADOPT,
        "a newer term exists: what was promised in the old one is over",
        "figure 2, all servers",
    ),
    Transition(
        Role.PRE_CANDIDATE,
        Trigger.ELECTION_TIMEOUT,
        Role.PRE_CANDIDATE,
        TermRule.KEEP,
        "no majority answered in time: ask again, with a new random wait",
        "thesis 9.6",
    ),
    Transition(
        Role.PRE_CANDIDATE,
        Trigger.PRE_VOTE_WON,
        Role.CANDIDATE,
        TermRule.NEXT,
        "a majority would vote: now the term may rise",
        "thesis 9.6",
    ),
    Transition(
        Role.PRE_CANDIDATE,
        Trigger.PRE_VOTE_LOST,
        Role.FOLLOWER,
        TermRule.KEEP,
        "a majority would not vote: someone else leads or knows more",
        "thesis 9.6",
    ),
    Transition(
        Role.PRE_CANDIDATE,
        Trigger.TRANSFER_ORDERED,
        Role.CANDIDATE,
        TermRule.NEXT,
        "the leader of this very term is alive and steps aside",
        "thesis 3.10",
    ),
    Transition(
        Role.PRE_CANDIDATE,
        Trigger.VOTE_GRANTED,
        Role.FOLLOWER,
        TermRule.KEEP,
        "voted for a candidate of this term: give it time to win",
        "paper 5.2",
    ),
    Transition(
        Role.PRE_CANDIDATE,
        Trigger.LEADER_HEARD,
        Role.FOLLOWER,
        TermRule.KEEP,
        "this term has a live leader after all",
        "figure 2, candidates",
    ),
    Transition(
        Role.PRE_CANDIDATE,
        Trigger.HIGHER_TERM,
        Role.FOLLOWER,
        TermRule.ADOPT,
        "a newer term exists",
        "figure 2, all servers",
    ),
    Transition(
        Role.CANDIDATE,
        Trigger.ELECTION_TIMEOUT,
        Role.PRE_CANDIDATE,
        TermRule.KEEP,
        "split vote: ask again before the term rises once more",
        "figure 2, candidates; thesis 9.6",
    ),
    Transition(
        Role.CANDIDATE,
        Trigger.ELECTION_WON,
        Role.LEADER,
        TermRule.KEEP,
        "votes of a majority",
        "figure 2, candidates",
    ),
    Transition(
        Role.CANDIDATE,
        Trigger.ELECTION_LOST,
        Role.FOLLOWER,
        TermRule.KEEP,
        "a majority refused: this term cannot be won any more",
        "paper 5.2",
    ),
    Transition(
        Role.CANDIDATE,
        Trigger.LEADER_HEARD,
        Role.FOLLOWER,
        TermRule.KEEP,
        "another candidate won this term",
        "figure 2, candidates",
    ),
    Transition(
        Role.CANDIDATE,
        Trigger.HIGHER_TERM,
        Role.FOLLOWER,
        TermRule.ADOPT,
        "a newer term exists",
        "figure 2, all servers",
    ),
    Transition(
        Role.LEADER,
        Trigger.HIGHER_TERM,
        Role.FOLLOWER,
        TermRule.ADOPT,
        "a newer term exists",
        "figure 2, all servers",
    ),
    Transition(
        Role.LEADER,
        Trigger.QUORUM_LOST,
        Role.FOLLOWER,
        TermRule.KEEP,
        "no majority answered for an election timeout: clients must look elsewhere",
        "thesis 6.2",
    ),
    Transition(
        Role.LEADER,
        Trigger.RESIGNED,
        Role.FOLLOWER,
        TermRule.KEEP,
        "the outcome of a proposal is uncertain: let the next leader read the truth from the log",
        "mission R5",
    ),
)

_ROWS = {(row.source, row.trigger): row for row in TRANSITIONS}
assert len(_ROWS) == len(TRANSITIONS), f"{len(TRANSITIONS)} rows, {len(_ROWS)} distinct"


def find_transition(source: Role, trigger: Trigger) -> Transition | None:
    """The one row for a role and a trigger, or None where the trigger cannot occur."""
    return _ROWS.get((source, trigger))
