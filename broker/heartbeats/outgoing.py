"""`Outgoing`: the claims of a node towards one peer: what it told, and what was acknowledged.

`_told` has the claims of the present generation, `_pending` the groups whose claims changed since
the newest acknowledged generation. A change is noted once for each peer and is in every beat until
an acknowledgement covers it. A withdrawn claim stays in `_told` as long as it is pending.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ottla.broker.heartbeats.incoming import Incoming, newest
from ottla.broker.heartbeats.messages import NO_REPLICA, Beat, BeatAck, BeatItem, Claim
from ottla.raft.types import GroupId, LogIndex, Micros, NodeId, Term

KnownTo: TypeAlias = Callable[[NodeId], LogIndex]
"""Returns the commit index that a follower holds for certain; 0 if nothing is known of it."""


def known_to_nobody(_follower: NodeId) -> LogIndex:
    """The default: nothing is known of any follower."""
    return 0


class Led:
    """A group that this node leads."""

    __slots__ = ("claimed", "commit", "followers", "known_to", "term")

    def __init__(self, term: Term, followers: tuple[NodeId, ...], commit: LogIndex):
        self.term = term
        self.followers = followers
        self.commit = commit
        self.known_to: KnownTo = known_to_nobody
        self.claimed: dict[NodeId, int] = {}
        """By peer: the first generation that has this claim; all later ones have it, too."""


class Outgoing:
    """The claims towards one peer."""

    __slots__ = (
        "_acked_sequence",
        "_base",
        "_changed",
        "_generation",
        "_heard",
        "_items",
        "_pending",
        "_refused",
        "_sequence",
        "_told",
        "_vouched_at",
        "behind",
        "full",
        "hurry",
        "owed",
        "peer",
        "refusals_changed",
        "relayed",
        "relayed_of",
    )

    def __init__(self, peer: NodeId):
        self.peer = peer
        self.full = True
        """The peer needs all claims."""
        self.hurry = False
        """Something changed since the last beat, so the next one may be sent before its time."""
        self.owed: BeatAck | None = None
        """The acknowledgement that goes to the peer with the next beat."""
        self.relayed: Mapping[GroupId, Claim] = {}
        """Claims of nodes that the peer does not hear; they are in every beat."""
        self.relayed_of: list[tuple[NodeId, int, int]] = []
        """The nodes of these claims, with their incarnations and their numbers of changes."""
        self._changed = False  # whether a claim changed since `_generation`
        self._generation = 0
        self._base = 0
        self._sequence = 0
        self._acked_sequence = 0
        self._vouched_at: Micros | None = None
        self._told: dict[GroupId, BeatItem] = {}
        self._pending: dict[GroupId, int] = {}
        # The items of the last beat, if the next one has the same; else None.
        self._items: tuple[BeatItem, ...] | None = None
        self.behind: dict[GroupId, None] = {}
        """Groups whose commit index is ahead of what the peer holds."""
        self._heard = False  # whether the peer was heard since the last `lagging`
        self._refused: dict[GroupId, Term] = {}
        self.refusals_changed: list[GroupId] = []
        """Groups that the last acknowledgement refused and the one before did not, and groups that
        the last one no longer refused: their followers came back."""

    def claim(self, group: GroupId, led: Led) -> None:
        """Tell the peer that this node leads `group`, unless it was told exactly that before."""
        peer = self.peer
        if peer in led.followers:
            commit = led.commit
            known = led.known_to(peer)
            if known < commit:
                commit = known
                self.behind[group] = None
        else:
            commit = NO_REPLICA
        told = self._told.get(group)
        item = BeatItem(group, led.term, commit, True)
        if told != item:
            self._tell(item)
        if peer not in led.claimed:
            led.claimed[peer] = self._generation + self._changed

    def withdraw(self, group: GroupId) -> None:
        """Tell the peer that this node no longer leads `group`, if it was told so."""
        self.behind.pop(group, None)
        told = self._told.get(group)
        if told is not None and told.leading:
            self._tell(BeatItem(group, told.term, 0, False))

    def beat(
        self, node: NodeId, incarnation: int, now: Micros, hears: Sequence[NodeId] = ()
    ) -> Beat:
        """The next beat from `node` to this peer. `hears`: the nodes that `node` hears."""
        if self._changed:
            self._generation += 1
            self._changed = False
        self.hurry = False
        self._sequence += 1
        owed, self.owed = self.owed, None
        items = self._items
        if items is None:
            told = self._told
            if self.full:
                items = tuple(item for item in told.values() if item.leading)
            else:
                items = tuple(told[group] for group in self._pending)
            self._items = items
        generation, base = self._generation, self._base
        sequence, full = self._sequence, self.full
        return Beat(
            sender=node,
            to=self.peer,
            incarnation=incarnation,
            sequence=sequence,
            generation=generation,
            base_generation=base,
            full=full,
            items=items,
            sent_at=now,
            ack=owed,
            hears=hears,
            relayed=self.relayed,
        )

    def relay(self, unheard: Sequence[Incoming]) -> None:
        """Tell the peer the claims of these nodes. The claims are read only if they changed: a dead
        peer hears nobody, so this is called for it all the time."""
        of = [(each.peer, each.incarnation, each.changes) for each in unheard]
        if of != self.relayed_of:
            self.relayed, self.relayed_of = newest(unheard), of

    def lagging(self) -> list[GroupId]:
        """Groups to claim again, because the peer may hold more committed entries by now.

        Empty if the peer was not heard since the last call, so that a dead peer costs nothing.
        """
        if not self.behind or not self._heard:
            return []
        self._heard = False
        groups = list(self.behind)
        self.behind = {}
        return groups

    def take_ack(self, ack: BeatAck) -> bool:
        """Take an acknowledgement of a beat of this incarnation. False: it is an old one."""
        if not self._acked_sequence < ack.sequence <= self._sequence:
            return False
        self._acked_sequence = ack.sequence
        self._heard = True
        self.refusals_changed = []
        if not self._base <= ack.generation <= self._generation:
            self.restart()
            return True
        if self.full:
            self.full = False
            self._items = None
        self._base = ack.generation
        self._vouched_at = ack.sent_at
        if self._refused or ack.higher_terms:
            before, self._refused = self._refused, dict(ack.higher_terms)
            self.refusals_changed = [group for group in before if group not in self._refused]
            self.refusals_changed += [group for group in self._refused if group not in before]
        if self._pending:
            self._settle(ack.generation)
        return True

    def restart(self) -> None:
        """The peer has lost the claims: send it all of them soon."""
        if not self.full:
            self.full = self.hurry = True
            self._items = None

    def vouched_at(self, group: GroupId, led: Led) -> Micros | None:
        """When the beat was sent whose acknowledgement says that the peer follows in this group;
        None if there is none."""
        claimed = led.claimed.get(self.peer)
        if claimed is None or claimed > self._base or group in self._refused:
            return None
        return self._vouched_at

    @property
    def acknowledged(self) -> Micros | None:
        """When the last beat that the peer acknowledged was sent; None before the first."""
        return self._vouched_at

    def _tell(self, item: BeatItem) -> None:
        self._told[item.group] = item
        self._pending[item.group] = self._generation + 1
        self._items = None
        self._changed = self.hurry = True

    def _settle(self, generation: int) -> None:
        """The peer has everything up to `generation`: do not send it again."""
        pending, told = self._pending, self._told
        settled = [group for group, changed in pending.items() if changed <= generation]
        for group in settled:
            del pending[group]
            if not told[group].leading:
                del told[group]
        if settled:
            self._items = None
