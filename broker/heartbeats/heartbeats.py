"""Heartbeats per pair of nodes: one small message vouches for any number of Raft groups.

A *claim* says: "I lead `group` in `term`, and entries up to `commit` are committed". A node keeps
its claims towards each peer as numbered states, the *generations*. A beat (`Beat`) has the claims
that changed since the newest generation that the peer has acknowledged (`base_generation`), and the
`generation` of the present state. A receiver that has any generation between the two reaches the
present one by applying the items, because items are values, not differences. Then a beat without
items says that all claims of that generation still hold. So 1,000 idle groups cost one small
message per pair of nodes and interval, and the work does not depend on their number.

Nothing bypasses the Raft core. A changed item becomes a `Heartbeat` for the core of its group at
once. Claims that merely still hold are kept as leader, term and time (`vouched`,
`replies_vouched`). When a deadline is near, the replica makes a `Heartbeat` or `HeartbeatReply` of
them and steps it through its core. Barriers (read index) use real messages, never beats.

| danger | rule |
|---|---|
| lost beat | items stay in every beat until a generation that has them is acknowledged |
| duplicate or late beat, late ack | `sequence`: only a newer one counts |
| restart of the sender | a larger `incarnation` clears all its claims |
| restart of the receiver | it has no such generation: it acks `SEND_FULL` and gets all claims |
| restart of the receiver, lost acks | a peer that is not heard gets all claims with every beat |
| withdrawn claim | an item says so; a full beat withdraws all claims that it does not name |
| old and new leader both claim | the higher term is believed, a lower one never again |
| follower has a higher term in one group | every ack names it, until the claim changes |
| a cut between a leader and one other node | a node that hears both relays it: `relayed` |
| follower without a replica (not yet, or no longer) | the ack names the group with term 0 |
| late ack, check-quorum | an ack counts for when its beat was *sent*, by the sender's clock |
| commit beyond what a follower holds | its item has min(commit, its match), later more |

An ack does not vouch for the groups that it names. A beat without items is not compared with any
group. So the node must call `term_moved` when the term of a hosted core changes, and when a replica
is opened or closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ottla.broker.heartbeats.incoming import Incoming, unheard_by
from ottla.broker.heartbeats.messages import NO_REPLICA, SEND_FULL, Beat, BeatAck, BeatItem, Claim
from ottla.broker.heartbeats.outgoing import KnownTo, Led, Outgoing
from ottla.raft.messages import Heartbeat, HeartbeatReply, Message
from ottla.raft.types import NO_NODE, GroupId, LogIndex, Micros, NodeId, Term

__all__ = ["NO_REPLICA", "SEND_FULL", "Beat", "BeatAck", "BeatItem", "Heartbeats"]

CurrentTerm: TypeAlias = Callable[[GroupId], Term | None]
"""Returns the term of a group's core on this node; None if the node has no replica of it."""

LATELY = 3
"""A node counts as heard for this many intervals (one or two beats may be lost)."""
_AT_ONCE: Micros = 0
_NO_REPLICA_HERE: Term = 0
_NEVER_LED = (NO_NODE, -1)


class Heartbeats:
    """All beats of one node, sent and received.

    `incarnation` must be larger after every restart of the node (for example the clock at its
    start, but not a random number). `interval` and all times are microseconds of one monotonic
    clock. `acks_ride`: whether an acknowledgement may be an interval late (see `rides`).
    """

    def __init__(
        self,
        node: NodeId,
        peers: Sequence[NodeId],
        interval: Micros,
        incarnation: int,
        now: Micros,
        *,
        acks_ride: bool = False,
    ):
        self._node = node
        self._acks_ride = acks_ride
        self._interval = interval
        self._incarnation = incarnation
        self._next = now
        self._urgent = False
        self.changed: dict[GroupId, None] = {}
        """Groups for which a peer's claim, or its refusal of ours, changed; see `take_changed`."""
        self._led: dict[GroupId, Led] = {}
        self._dirty: dict[GroupId, None] = {}
        self._outgoing = {peer: Outgoing(peer) for peer in peers if peer != node}
        self._incoming: dict[NodeId, Incoming] = {}
        self._seen: dict[NodeId, Micros] = {}
        self._hears: tuple[NodeId, ...] = ()
        # For each group the highest term that was claimed, and the leader; NO_NODE if withdrawn.
        self._leaders: dict[GroupId, tuple[NodeId, Term]] = {}

    # The side that leads

    def leading(
        self, group: GroupId, term: Term, followers: tuple[NodeId, ...], commit: LogIndex
    ) -> None:
        """This node leads `group` in `term`; `followers` are its other voters."""
        self._led[group] = Led(term, followers, commit)
        self._dirty[group] = None
        self._believe(group, term, self._node)

    def not_leading(self, group: GroupId) -> None:
        """This node does not lead `group` (any more)."""
        if self._led.pop(group, None) is not None:
            self._dirty[group] = None
            self._disbelieve(group, self._node)

    def committed(
        self,
        group: GroupId,
        commit: LogIndex,
        known_to: KnownTo | None = None,
    ) -> None:
        """The commit index of `group` moved. Without effect if this node does not lead the group.

        `known_to(follower)` returns what a follower holds for certain (`RaftCore.commit_known_to`).
        It is called when a beat is made, and again for a follower that was behind. None: keep the
        function given before in this leadership; if there was none, followers are told commit 0.
        Costs O(1).
        """
        led = self._led.get(group)
        if led is not None:
            led.commit = commit
            if known_to is not None:
                led.known_to = known_to
            self._dirty[group] = None

    def urgent(self, group: GroupId) -> None:
        """Send changes of `group` (and all other changes) at the next `due`, not only after the
        interval.

        Call it also when a follower has caught up, so that it is told the whole commit index.
        Nothing is sent to a peer for which nothing changed.
        """
        if group in self._led:
            self._dirty[group] = None
        self._urgent = True

    def due(self, now: Micros) -> list[Beat]:
        """The beats to send now: to every peer once an interval, and after `urgent` to peers for
        which something changed."""
        regular = now >= self._next
        if not regular and not self._urgent:
            return []
        self._urgent = False
        self._spread()
        if regular:
            self._next = now + self._interval
            lately = now - LATELY * self._interval
            self._hears = tuple(peer for peer, at in self._seen.items() if at >= lately)
            for peer, outgoing in self._outgoing.items():
                outgoing.relay(unheard_by(peer, self._hears, self._incoming))
                if peer not in self._hears:
                    outgoing.restart()
        return [
            outgoing.beat(self._node, self._incarnation, now, self._hears)
            for outgoing in self._outgoing.values()
            if regular or outgoing.hurry
        ]

    def deadline(self) -> Micros:
        """When `due` has something to send next; 0 means at once."""
        return _AT_ONCE if self._urgent else self._next

    @property
    def next_round(self) -> Micros:
        """When every peer gets its next regular beat."""
        return self._next

    def on_ack(self, ack: BeatAck, now: Micros) -> list[Message]:
        """Take an acknowledgement. Returns messages for our own cores, about higher terms."""
        outgoing = self._outgoing.get(ack.sender)
        if outgoing is None or ack.incarnation != self._incarnation or not outgoing.take_ack(ack):
            return []
        self._seen[ack.sender] = now
        self.changed.update(dict.fromkeys(outgoing.refusals_changed))
        self._urgent = self._urgent or (outgoing.full and outgoing.hurry)
        replies: list[Message] = []
        for group, term in ack.higher_terms:
            led = self._led.get(group)
            if led is not None and term > led.term:
                replies.append(HeartbeatReply(group, ack.sender, self._node, term))
        return replies

    def replies_vouched(self, group: GroupId) -> list[tuple[NodeId, Micros]]:
        """The followers that have acknowledged our claim to `group` in our current term, each with
        the time when its last acknowledged beat was sent: at that time or later it followed us."""
        led = self._led.get(group)
        if led is None:
            return []
        vouched = []
        for peer in led.followers:
            outgoing = self._outgoing.get(peer)
            at = None if outgoing is None else outgoing.vouched_at(group, led)
            if at is not None:
                vouched.append((peer, at))
        return vouched

    # The side that follows

    def on_beat(
        self, beat: Beat, now: Micros, current_term: CurrentTerm
    ) -> tuple[BeatAck, list[Heartbeat]]:
        """Take a beat. Returns the acknowledgement, and Heartbeats to step through the cores of
        their groups."""
        incoming = self._incoming_of(beat)
        if beat.incarnation < incoming.incarnation:
            return self._ack(beat, SEND_FULL, {}), []
        heartbeats: list[Heartbeat] = []
        if beat.sequence > incoming.sequence:
            incoming.sequence = beat.sequence
            incoming.hears = beat.hears
            incoming.relayed = beat.relayed
            self._seen[beat.sender] = now
            builds_upon = beat.base_generation <= incoming.generation <= beat.generation
            if not beat.full and not builds_upon:
                return self._ack(beat, SEND_FULL, {}), []
            incoming.heard = now
            incoming.generation = beat.generation
            if beat.full:
                self._withdraw_unnamed(incoming, beat.items)
            if beat.items:
                self._apply(incoming, beat.items)
            if incoming.recheck:
                heartbeats = self._hold_against_cores(incoming, current_term)
        return self._ack(beat, incoming.generation, incoming.refused), heartbeats

    def rides(self, beat: Beat, ack: BeatAck) -> bool:
        """Whether the acknowledgement goes with the next beat to that node, and need not be sent
        now.

        That is so if neither has anything new and one interval of delay is small compared to the
        election timeout. So an idle pair of nodes exchanges two messages per interval instead of
        four.
        """
        news = beat.full or beat.items or ack.generation != beat.generation or ack.higher_terms
        outgoing = self._outgoing.get(beat.sender)
        if news or outgoing is None or not self._acks_ride:
            return False
        outgoing.owed = ack
        return True

    def term_moved(self, group: GroupId) -> None:
        """The core of a hosted group has another term, or its replica was opened or closed.

        Without this call, acknowledgements would go on to vouch for a leader of an older term.
        """
        for incoming in self._incoming.values():
            if group in incoming.claims:
                incoming.recheck[group] = None

    def vouched(self, group: GroupId) -> tuple[NodeId, Term, Micros] | None:
        """The other node that leads `group` by its claims, its term, and when its last beat
        arrived. None: no other node claims it.

        The caller compares the time with its own timeout and the term with its core's. A beat
        vouches for the time when it was sent; the time here is that of its arrival.
        """
        leader = self.leader_of(group)
        if leader is None or leader[0] == self._node:
            return None
        return (*leader, self._incoming[leader[0]].heard)

    def leader_of(self, group: GroupId) -> tuple[NodeId, Term] | None:
        """The leader of `group` and its term, by the highest claim (this node's claims count, too);
        None if that claim was withdrawn."""
        leader, term = self._leaders.get(group, _NEVER_LED)
        return None if leader == NO_NODE else (leader, term)

    def claim(self, group: GroupId) -> Claim:
        """The highest claim to `group`; its leader is `NO_NODE` if it was withdrawn."""
        leader, term = self._leaders.get(group, _NEVER_LED)
        return Claim(term, leader)

    def relayed(self, group: GroupId, now: Micros, within: Micros) -> Claim | None:
        """The newest claim to `group` of a node that this one does not hear, passed on by nodes
        that are `alive` and hear it; or None. Only for answers to clients (sim-S68)."""
        claims = [
            each.relayed[group]
            for each in self._incoming.values()
            if group in each.relayed and self.alive(each.peer, now, within)
        ]
        return max(claims, default=None)

    def alive(self, peer: NodeId, now: Micros, within: Micros) -> bool:
        """Whether a new beat or acknowledgement of `peer` arrived in the last `within`."""
        seen = self._seen.get(peer)
        return peer == self._node or (seen is not None and now - seen <= within)

    def hears(self, peer: NodeId) -> bool:
        """Whether `peer` was heard lately (`LATELY`), as this node tells the others."""
        return peer in self._hears

    def heard_of(self, peer: NodeId, now: Micros, within: Micros) -> bool:
        """Whether another node that is `alive` said in its last beat that it hears `peer`."""
        return any(
            peer in each.hears and self.alive(each.peer, now, within)
            for each in self._incoming.values()
        )

    def heard(self, peer: NodeId) -> Micros | None:
        """When the last beat of `peer` that vouched for its claims arrived; None before the
        first."""
        incoming = self._incoming.get(peer)
        return None if incoming is None else incoming.heard

    def acknowledged(self, peer: NodeId) -> Micros | None:
        """When the last beat that `peer` acknowledged was sent; None before the first."""
        outgoing = self._outgoing.get(peer)
        return None if outgoing is None else outgoing.acknowledged

    def take_changed(self) -> dict[GroupId, None]:
        """Groups for which a peer's claim, or its refusal of ours, changed since the last call."""
        changed, self.changed = self.changed, {}
        return changed

    def forget(self, group: GroupId) -> None:
        """The group was deleted: drop all claims to it."""
        self.not_leading(group)
        self._leaders.pop(group, None)
        self.term_moved(group)

    # Inside

    def _spread(self) -> None:
        """Note for each peer which claims changed since the last call."""
        led_groups, dirty = self._led, self._dirty
        for outgoing in self._outgoing.values():
            if not dirty and not outgoing.behind:
                continue
            for groups in (outgoing.lagging(), dirty):
                for group in groups:
                    led = led_groups.get(group)
                    if led is None:
                        outgoing.withdraw(group)
                    else:
                        outgoing.claim(group, led)
        self._dirty = {}

    def _incoming_of(self, beat: Beat) -> Incoming:
        """The claims of the beat's sender; empty if this is the first beat of an incarnation."""
        incoming = self._incoming.get(beat.sender)
        if incoming is None or beat.incarnation > incoming.incarnation:
            if incoming is not None:
                self._withdraw_unnamed(incoming, ())
                outgoing = self._outgoing.get(beat.sender)
                if outgoing is not None:
                    outgoing.restart()
                    outgoing.hurry = self._urgent = True
            incoming = self._incoming[beat.sender] = Incoming(beat.sender, beat.incarnation)
        return incoming

    def _ack(self, beat: Beat, generation: int, refused: Mapping[GroupId, Term]) -> BeatAck:
        of = beat.sender, beat.incarnation, beat.sequence
        higher_terms = tuple(refused.items()) if refused else ()
        return BeatAck(self._node, *of, generation, beat.sent_at, higher_terms)

    def _withdraw_unnamed(self, incoming: Incoming, items: Sequence[BeatItem]) -> None:
        named = {item.group for item in items}
        for group in [group for group in incoming.claims if group not in named]:
            self._withdraw(incoming, group)

    def _withdraw(self, incoming: Incoming, group: GroupId) -> None:
        if incoming.claims.pop(group, None) is not None:
            incoming.changes += 1
            incoming.recheck.pop(group, None)
            incoming.refused.pop(group, None)
            self.changed[group] = None
            self._disbelieve(group, incoming.peer)

    def _apply(self, incoming: Incoming, items: Sequence[BeatItem]) -> None:
        claims, recheck = incoming.claims, incoming.recheck
        for item in items:
            group = item.group
            if not item.leading:
                self._withdraw(incoming, group)
            elif claims.get(group) != item:
                claims[group] = item
                incoming.changes += 1
                recheck[group] = self.changed[group] = None
                self._believe(group, item.term, incoming.peer)

    def _hold_against_cores(self, incoming: Incoming, current_term: CurrentTerm) -> list[Heartbeat]:
        """Heartbeats for new claims. A claim of an older term than the core's is refused
        instead."""
        recheck, incoming.recheck = incoming.recheck, {}
        claims, refused = incoming.claims, incoming.refused
        heartbeats = []
        for group in recheck:
            _group, term, commit, _leading = claims[group]
            own = current_term(group)
            refused.pop(group, None)
            if own is None:
                if commit != NO_REPLICA:
                    refused[group] = _NO_REPLICA_HERE
            elif own > term:
                refused[group] = own
            elif commit != NO_REPLICA:
                heartbeats.append(Heartbeat(group, incoming.peer, self._node, term, commit))
        return heartbeats

    def _believe(self, group: GroupId, term: Term, leader: NodeId) -> None:
        known = self._leaders.get(group)
        if known is None or term >= known[1]:
            self._leaders[group] = (leader, term)

    def _disbelieve(self, group: GroupId, leader: NodeId) -> None:
        known = self._leaders.get(group)
        if known is not None and known[0] == leader:
            self._leaders[group] = (NO_NODE, known[1])
