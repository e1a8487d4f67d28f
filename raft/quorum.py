"""Majorities as pure arithmetic: no messages, no state (Raft paper, sections 5.2 and 5.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from ottla.raft.types import NodeId


class VoteResult(Enum):
    """The result of a count of votes."""

    WON = "won"
    """A majority granted."""
    LOST = "lost"
    """Too many refused: a majority can no longer be reached."""
    PENDING = "pending"


def majority(voters: int) -> int:
    """How many of `voters` make a majority: any two majorities share a member."""
    return voters // 2 + 1


def reached(values: Sequence[int]) -> int:
    """The largest value that a majority has reached. `values`: one per voter, at least one.

    For match indexes this is the largest N such that a majority of them is at least N (figure 2,
    *rules for leaders*). It is also used for times and for barrier tickets.
    """
    return sorted(values)[(len(values) - 1) // 2]


def count_votes(voters: Collection[NodeId], votes: Mapping[NodeId, bool]) -> VoteResult:
    """Count one answer per voter; a voter that is missing from `votes` has not answered."""
    needed = majority(len(voters))
    granted = sum(1 for voter in voters if votes.get(voter) is True)
    refused = sum(1 for voter in voters if votes.get(voter) is False)
    if granted >= needed:
        return VoteResult.WON
    if len(voters) - refused < needed:
        return VoteResult.LOST
    return VoteResult.PENDING
