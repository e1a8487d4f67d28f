"""What one peer claims in its beats, as the node keeps it that hears them: see `beats`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.broker.heartbeats.messages import SEND_FULL, BeatItem, Claim
from ottla.raft.types import GroupId, Micros, NodeId, Term


class Incoming:
    """What one peer claims."""

    __slots__ = (
        "changes",
        "claims",
        "generation",
        "heard",
        "hears",
        "incarnation",
        "peer",
        "recheck",
        "refused",
        "relayed",
        "sequence",
    )

    def __init__(self, peer: NodeId, incarnation: int):
        self.peer = peer
        self.incarnation = incarnation
        self.sequence = 0
        self.generation = SEND_FULL
        self.claims: dict[GroupId, BeatItem] = {}
        self.changes = 0
        """Of `claims`, so far."""
        self.heard: Micros = 0
        """When a beat last vouched for `claims`."""
        self.hears: Sequence[NodeId] = ()
        """Whom it hears itself, as it said last."""
        self.recheck: dict[GroupId, None] = {}
        """Claims to be held against the group's core again."""
        self.refused: dict[GroupId, Term] = {}
        self.relayed: Mapping[GroupId, Claim] = {}
        """What nodes claim that this node does not hear, and the peer does."""


def unheard_by(
    peer: NodeId, heard: Iterable[NodeId], incoming: Mapping[NodeId, Incoming]
) -> list[Incoming]:
    """Those that this node has `heard` lately and `peer` does not hear, as it said last; all, if it
    says nothing: it may be cut off one way."""
    heard = tuple(heard)
    hears = incoming[peer].hears if peer in heard and peer in incoming else ()
    unheard = [each for each in heard if each != peer and each not in hears]
    return [incoming[each] for each in unheard if each in incoming]


def newest(unheard: Iterable[Incoming]) -> dict[GroupId, Claim]:
    """What these peers claim, for who does not hear them: of each group the newest claim."""
    relayed: dict[GroupId, Claim] = {}
    for incoming in unheard:
        for group, item in incoming.claims.items():
            claim = Claim(item.term, incoming.peer)
            relayed[group] = max(claim, relayed.get(group, claim))
    return relayed
