"""The leading side of beats: what a node claims, and per peer what it told and what was taken.

`Outgoing.told` is the state of the claims as of `generation`, `pending` the groups that changed
since the newest acknowledged one. A change is noted once for each peer; it stays in every beat
until an acknowledgement covers it. Withdrawn claims stay in `told` for as long as they are pending.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ottla.broker.heartbeats.incoming import Incoming, newest
from ottla.broker.heartbeats.messages import NO_REPLICA, Beat, BeatAck, BeatItem, Claim
from ottla.raft.types import GroupId, LogIndex, Micros, NodeId, Term

KnownTo: TypeAlias = Callable[[NodeId], LogIndex]
"""What a follower holds for certain (at least as far as it is committed); 0 when unknown."""


def known_to_nobody(_follower: NodeId) -> LogIndex:
    """What followers hold before anything was heard of them: nothing."""
    return 0


class Led:
    """A group this node leads."""

    __slots__ = ("claimed", "commit", "followers", "known_to", "term")

    def __init__(self, term: Term, followers: tuple[NodeId, ...], commit: LogIndex):
        self.term = term
        self.followers = followers
        self.commit = commit
        self.known_to: KnownTo = known_to_nobody
        self.claimed: dict[NodeId, int] = {}
        """By peer: a generation that holds this claim, as all later ones do."""


class Outgoing:
    """What one peer is told."""

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
        "newly_refused",
        "owed",
        "peer",
        "relayed",
        "relayed_of",
    )

    def __init__(self, peer: NodeId):
        self.peer = peer
        self.full = True
        """The peer needs all claims."""
        self.hurry = False
        """There is something to say that the last beat did not; it need not wait."""
        self.owed: BeatAck | None = None
        """What goes to the peer with the next beat."""
        self.relayed: Mapping[GroupId, Claim] = {}
        """What others claim whom the peer does not hear; in every beat."""
        self.relayed_of: list[tuple[NodeId, int, int]] = []
        """Whose claims these are, of which life, and after how many changes."""
        self._changed = False  # since `_generation`
        self._generation = 0
        self._base = 0
        self._sequence = 0
        self._acked_sequence = 0
        self._vouched_at: Micros | None = None
        self._told: dict[GroupId, BeatItem] = {}
        self._pending: dict[GroupId, int] = {}
        # The items of the last beat, while the next one needs the same.
        self._items: tuple[BeatItem, ...] | None = None
        self.behind: dict[GroupId, None] = {}
        """Groups whose commit is ahead of what the peer holds."""
        self._heard = False  # since `behind` was last looked at
        self._refused: dict[GroupId, Term] = {}
        self.newly_refused: Sequence[GroupId] = ()
        """Groups that the last acknowledgement names, and the one before did not."""

    def claim(self, group: GroupId, led: Led) -> None:
        """Tell the peer that this node leads `group`, unless it was told exactly that."""
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
        """The next beat from `node` to this peer; `node` hears of those."""
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
        """Tell the peer what these claim. Looks at no claim while nothing changed: a peer that is
        dead hears nobody, for as long as it is."""
        of = [(each.peer, each.incarnation, each.changes) for each in unheard]
        if of != self.relayed_of:
            self.relayed, self.relayed_of = newest(unheard), of

    def lagging(self) -> list[GroupId]:
        """Groups to claim again, because the peer may by now hold more of what is committed.

        Empty while nothing was heard of the peer: then it cannot hold more, and a dead peer costs
        nothing.
        """
        if not self.behind or not self._heard:
            return []
        self._heard = False
        groups = list(self.behind)
        self.behind = {}
        return groups

    def take_ack(self, ack: BeatAck) -> bool:
        """Take in an acknowledgement of this incarnation's beats; False when it is an old one."""
        if not self._acked_sequence < ack.sequence <= self._sequence:
            return False
        self._acked_sequence = ack.sequence
        self._heard = True
        self.newly_refused = ()
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
            self.newly_refused = [each for each in self._refused if each not in before]
        if self._pending:
            self._settle(ack.generation)
        return True

    def restart(self) -> None:
        """The peer has lost what it was told: tell it everything, soon."""
        if not self.full:
            self.full = self.hurry = True
            self._items = None

    def vouched_at(self, group: GroupId, led: Led) -> Micros | None:
        """When the beat was sent whose ack says that the peer follows in this claim."""
        claimed = led.claimed.get(self.peer)
        if claimed is None or claimed > self._base or group in self._refused:
            return None
        return self._vouched_at

    @property
    def acknowledged(self) -> Micros | None:
        """When the beat was sent that the peer acknowledged last."""
        return self._vouched_at

    def _tell(self, item: BeatItem) -> None:
        self._told[item.group] = item
        self._pending[item.group] = self._generation + 1
        self._items = None
        self._changed = self.hurry = True

    def _settle(self, generation: int) -> None:
        """Everything up to `generation` has been taken: it need not be told again."""
        pending, told = self._pending, self._told
        settled = [group for group, changed in pending.items() if changed <= generation]
        for group in settled:
            del pending[group]
            if not told[group].leading:
                del told[group]
        if settled:
            self._items = None
