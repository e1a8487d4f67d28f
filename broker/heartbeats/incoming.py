"""`Incoming`: the claims of one peer, as the node that receives its beats keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.broker.heartbeats.messages import SEND_FULL, BeatItem, Claim
from ottla.raft.types import GroupId, Micros, NodeId, Term


class Incoming:
    """The claims of one peer, from its beats."""

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
        """How often `claims` has changed."""
        self.heard: Micros = 0
        """When the last beat that vouched for `claims` arrived."""
        self.hears: Sequence[NodeId] = ()
        """The nodes that the peer hears, by its last beat."""
        self.recheck: dict[GroupId, None] = {}
        """Groups whose claim must be compared with the core again."""
        self.refused: dict[GroupId, Term] = {}
        self.relayed: Mapping[GroupId, Claim] = {}
        """Claims of nodes that the peer hears and this node does not."""


def unheard_by(
    peer: NodeId, heard: Iterable[NodeId], incoming: Mapping[NodeId, Incoming]
) -> list[Incoming]:
    """The nodes that this node has `heard` lately and that `peer` does not hear, by its last beat.
    If `peer` itself was not heard, all of them: it may be cut off in one direction."""
    heard = tuple(heard)
    hears = incoming[peer].hears if peer in heard and peer in incoming else ()
    unheard = [each for each in heard if each != peer and each not in hears]
    return [incoming[each] for each in unheard if each in incoming]


def newest(unheard: Iterable[Incoming]) -> dict[GroupId, Claim]:
    """The newest claim of these peers for each group, to be passed on to a node that does not hear
    them."""
    relayed: dict[GroupId, Claim] = {}
    for incoming in unheard:
        for group, item in incoming.claims.items():
            claim = Claim(item.term, incoming.peer)
            relayed[group] = max(claim, relayed.get(group, claim))
    return relayed
