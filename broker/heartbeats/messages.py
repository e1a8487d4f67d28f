"""The heartbeat messages between nodes: beats, their items, and acknowledgements.

`ottla.broker.heartbeats.heartbeats` explains the rules behind the fields. Messages are values:
nobody may change them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.raft.types import GroupId, LogIndex, Micros, NodeId, Term

SEND_FULL = -1
"""The generation of a receiver that needs all claims."""

NO_REPLICA: LogIndex = -1
"""The commit of an item for a node that is no voter of the group: it only learns the leader."""


class BeatItem(NamedTuple):
    """One claim: the sender leads `group` in `term`. `leading` False: it no longer leads."""

    group: GroupId
    term: Term
    commit: LogIndex
    """The commit index, at most what the receiver holds; `NO_REPLICA` if that is no voter."""
    leading: bool


class Claim(NamedTuple):
    """The claim of a node to lead a group in a term, for answers to clients. The larger of two
    claims is newer. A core follows only by a `BeatItem`, which comes from the leader itself."""

    term: Term
    leader: NodeId


@dataclass(slots=True)
class Beat:
    """A heartbeat from one node to another: the sender is alive, and leads these groups."""

    sender: NodeId
    to: NodeId
    incarnation: int
    """The incarnation of the sender; larger after every restart."""
    sequence: int
    """Counts the beats of this pair and incarnation, from 1."""
    generation: int
    """The generation of the claims after the items are applied."""
    base_generation: int
    """The oldest generation to which the items can be applied."""
    full: bool
    """Whether the items are all claims; then the base does not matter."""
    items: Sequence[BeatItem]
    sent_at: Micros
    """When the beat was sent, by the sender's clock; the acknowledgement returns it."""
    ack: BeatAck | None = None
    """The acknowledgement of the receiver's newest beat, if that was not sent yet."""
    hears: Sequence[NodeId] = ()
    """The nodes that the sender has heard lately."""
    relayed: Mapping[GroupId, Claim] = field(default_factory=dict)
    """The claims of those of them that the receiver does not hear."""


@dataclass(slots=True)
class BeatAck:
    """Acknowledges a beat: the sender follows in all claims of `generation` except in the groups of
    `higher_terms`."""

    sender: NodeId
    to: NodeId
    incarnation: int
    """The incarnation in the beat."""
    sequence: int
    """The sequence of the beat."""
    generation: int
    """The generation that the acknowledging node now has; `SEND_FULL` if it needs all claims."""
    sent_at: Micros
    """The `sent_at` of the beat."""
    higher_terms: Sequence[tuple[GroupId, Term]] = ()
    """Groups in which it does not follow, each with its own term; 0: it has no replica."""
