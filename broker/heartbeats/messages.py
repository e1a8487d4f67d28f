"""What nodes say to each other to stay in touch: beats, their items, and acknowledgements.

The rules behind the fields are told in `ottla.broker.heartbeats.heartbeats`. All messages are
values: whoever carries them hands them on as they are, and nobody changes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.raft.types import GroupId, LogIndex, Micros, NodeId, Term

SEND_FULL = -1
"""Generation of a receiver that cannot follow: it needs all claims."""

NO_REPLICA: LogIndex = -1
"""Commit of an item for a node that is no voter of the group: it only learns who leads."""


class BeatItem(NamedTuple):
    """One claim: the sender leads `group` in `term`; `leading` False: no longer."""

    group: GroupId
    term: Term
    commit: LogIndex
    """Committed, never beyond what the receiver holds; `NO_REPLICA` where that is no voter."""
    leading: bool


class Claim(NamedTuple):
    """Who says to lead a group, in which term, as clients are told it; of two the larger is
    newer. What makes a core follow is a `BeatItem`, which comes from that node itself."""

    term: Term
    leader: NodeId


@dataclass(slots=True)
class Beat:
    """One node to another: still alive, and this is what I lead."""

    sender: NodeId
    to: NodeId
    incarnation: int
    """Of the sender; larger after every restart."""
    sequence: int
    """Counts the beats of this pair and incarnation, from 1."""
    generation: int
    """The state of the claims when the beat was made."""
    base_generation: int
    """The state the items build upon."""
    full: bool
    """The items are all claims there are; the base does not matter."""
    items: Sequence[BeatItem]
    sent_at: Micros
    """The sender's clock; only ever echoed."""
    ack: BeatAck | None = None
    """Of the receiver's newest beat, if that is not acknowledged yet."""
    hears: Sequence[NodeId] = ()
    """Nodes of which the sender heard lately, whoever they lead."""
    relayed: Mapping[GroupId, Claim] = field(default_factory=dict)
    """All that those of them claim which the receiver does not hear, as it said last."""


@dataclass(slots=True)
class BeatAck:
    """Answer to a beat: the sender follows in all claims of `generation` but `higher_terms`."""

    sender: NodeId
    to: NodeId
    incarnation: int
    """Of the beat's sender."""
    sequence: int
    """Of the beat."""
    generation: int
    """What the receiver now has; `SEND_FULL` when it needs all claims."""
    sent_at: Micros
    """Echo of the beat's."""
    higher_terms: Sequence[tuple[GroupId, Term]] = ()
    """Groups in which it does not follow, with its own term there; 0: it has no replica."""
