"""`DeadlineWatch`: when each replica of a node must be looked at though nothing arrives for it.

Every replica has deadlines: an election, a retransmission, an overdue client. They stand in one
timer queue. A *look* first lets the beats vouch (for a follower: its leader was heard; for a
leader: its followers were), which usually moves the deadline on, and only then gives the replica a
turn if something is really due.

With a thousand idle partitions even looking is too much. So a look that finds a replica vouched for
*trusts* the peers concerned and takes its election or quorum deadline out of the queue. It comes
back when there is reason for doubt, and nothing is decided by trust itself:

| doubt | how it is noticed |
|---|---|
| a peer fell silent | `silent_peers`, asked at every beat: all who trust it are looked at |
| a peer claims something else, or no longer | the items of its beat, or a full beat |
| a peer stopped following in a group | what its acknowledgement names, and the last did not |
| the replica's own role, term or leader changed | `doubt` by the runner |

A leader that is trusted is still looked at twice per lag time, so that idle followers stay in sync.

A peer that falls silent, or comes back, may concern thousands of replicas. So a turn of the event
loop sees `MOST_LOOKS` of them, and the others are due in the next one. A beat with more items than
that comes again and again to a node that is not heard; it counts by what it changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from ottla.broker.config import ClusterConfig
from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.event_loop.timers import TimerQueue
from ottla.broker.heartbeats.heartbeats import Beat, Heartbeats
from ottla.raft.messages import Heartbeat, HeartbeatReply
from ottla.raft.quorum import majority
from ottla.raft.roles import Role
from ottla.raft.types import GroupId, Micros, NodeId

GLANCE: Micros = 50_000
"""How soon after a turn a busy replica is looked at, at the latest."""
AT_ONCE: Micros = 0
"""A time that is past: what is due then is due now."""
MOST_LOOKS = 200
"""Looks in one turn of the event loop, at some 20 us each; the rest is due in the next one."""

Vouched: TypeAlias = Sequence[tuple[NodeId, Micros]]
"""Followers, with when each was heard."""


class DeadlineWatch:
    """See the module's text. `hosted_replicas` are the node's replicas; what looks at some of them
    yields those that need a turn."""

    def __init__(
        self,
        node: NodeId,
        config: ClusterConfig,
        *,
        beats: Heartbeats,
        hosted_replicas: Mapping[GroupId, HostedReplica],
    ):
        self._node = node
        self._beats = beats
        self._hosted_replicas = hosted_replicas
        self._timers: TimerQueue[GroupId] = TimerQueue()
        # Silence is noticed well before any election or quorum deadline.
        self._patience: Micros = config.election_timeout_ms * 1000 // 2
        self._lag_look: Micros = max(config.replica_lag_ms * 1000 // 2, self._patience)
        self._led_by: dict[NodeId, dict[GroupId, None]] = {}
        self._followed_by: dict[NodeId, dict[GroupId, None]] = {}
        self._doubted: dict[GroupId, None] = {}
        """To be looked at, in order."""

    # --- the queue ----------------------------------------------------------------------------

    def next(self) -> Micros | None:
        """When the next look is due."""
        return AT_ONCE if self._doubted else self._timers.next()

    def before_turn(self, hosted: HostedReplica) -> None:
        """A replica that trusts, or whose look is due, is about to take a turn, in which it judges
        its own deadlines: tell it what beats vouched for first, and look at it by its deadlines
        from here on."""
        hosted.trusting = False
        self.vouch(hosted)

    def after_turn(self, hosted: HostedReplica, now: Micros) -> bool:
        """A replica took a turn: its deadlines may have moved. True: a look was put off or on.

        A busy replica is looked at a glance later, not asked after every turn: what falls due in
        between is noticed that much late. With the next beat, where that comes first: the node
        wakes for it anyway.
        """
        if now < hosted.look_at <= now + GLANCE:
            return False
        due, glance = hosted.replica.deadline(), min(now + GLANCE, max(now, self._beats.next_round))
        self._look_at(hosted, glance if due is None else min(due, glance))
        return True

    def _look_at(self, hosted: HostedReplica, when: Micros | None) -> None:
        hosted.look_at = 0 if when is None else when
        self._timers.set(hosted.group, when)

    def forget(self, group: GroupId) -> None:
        """The replica is gone."""
        self._timers.set(group, None)

    def due(self, now: Micros) -> Iterator[HostedReplica]:
        """Look at everything that is due, and at all who trust a peer that fell silent."""
        for group in self._timers.pop_due(now, MOST_LOOKS):
            hosted = self._hosted_replicas[group]
            if self._look(hosted, now):
                yield hosted
        self._doubt_the_silent(now)
        if self._doubted:
            yield from self._look_again(now)

    def _look(self, hosted: HostedReplica, now: Micros) -> bool:
        """True: it needs a turn."""
        followers = self.vouch(hosted)
        replica = hosted.replica
        hosted.trusting = self._may_trust(hosted, followers, now)
        due = replica.work_deadline() if hosted.trusting else replica.deadline()
        if replica.core.has_effects() or (due is not None and due <= now):
            return True
        if hosted.trusting and replica.leading:
            due = now + self._lag_look if due is None else min(due, now + self._lag_look)
        self._look_at(hosted, due)
        return False

    def _look_again(self, now: Micros) -> Iterator[HostedReplica]:
        doubted = self._doubted
        if len(doubted) <= MOST_LOOKS:
            self._doubted = {}
        else:
            doubted = dict.fromkeys(islice(doubted, MOST_LOOKS))
            for group in doubted:
                del self._doubted[group]
        for group in doubted:
            hosted = self._hosted_replicas.get(group)
            # Where a turn is due, that sees to it.
            if hosted is not None and not hosted.dirty and self._look(hosted, now):
                yield hosted

    # --- vouching -----------------------------------------------------------------------------

    def vouch(self, hosted: HostedReplica) -> Vouched:
        """Tell the core what beats vouched for since it last asked; returns that, for a leader. The
        same beat is not told twice: a candidate would follow once more whom it stands against for
        their silence."""
        replica, group = hosted.replica, hosted.group
        core = replica.core
        if core.role is Role.LEADER:
            followers = self._beats.replies_vouched(group)
            for peer, heard in followers:
                replica.vouch(HeartbeatReply(group, peer, self._node, core.term), heard)
            return followers
        vouched = self._beats.vouched(group)
        if vouched is not None and vouched != hosted.told:
            hosted.told = vouched
            leader, term, heard = vouched
            replica.vouch(Heartbeat(group, leader, self._node, term, 0), heard)
        return ()

    def _may_trust(self, hosted: HostedReplica, followers: Vouched, now: Micros) -> bool:
        """Whether beats vouch for this replica right now, a leader by `followers`; remembers whom
        it relies on."""
        core, group = hosted.replica.core, hosted.group
        if core.role is Role.LEADER:
            heard = [peer for peer, at in followers if now - at < self._patience]
            if len(heard) + 1 < majority(len(core.voters)):
                return False
            for peer in heard:
                self._followed_by.setdefault(peer, {})[group] = None
            return True
        vouched = self._beats.vouched(group)
        if core.role is not Role.FOLLOWER or vouched is None:
            return False
        leader, term, at = vouched
        if (leader, term) != (core.leader, core.term) or now - at >= self._patience:
            return False
        self._led_by.setdefault(leader, {})[group] = None
        return True

    # --- doubt --------------------------------------------------------------------------------

    def doubt(self, hosted: HostedReplica) -> None:
        """The replica's role, term or leader changed: trust has to be found anew."""
        hosted.trusting = False

    @property
    def doubts(self) -> bool:
        """Whether `due` has some left to look at."""
        return len(self._doubted) > 0

    def beat_taken(
        self, beat: Beat, changed: Iterable[GroupId], now: Micros
    ) -> Iterator[HostedReplica]:
        """A peer said what it leads, and of these it is no longer what it was: look at them."""
        if len(beat.items) > MOST_LOOKS:
            return self.doubt_all(changed, now)
        trusted = self._led_by.pop(beat.sender, {}) if beat.full else {}
        return self.doubt_all([*trusted, *(item.group for item in beat.items)], now)

    def doubt_all(self, groups: Iterable[GroupId], now: Micros) -> Iterator[HostedReplica]:
        """Look at these, or leave some of them to `due` (`doubts`)."""
        self._doubted.update(dict.fromkeys(groups))
        return self._look_again(now)

    def _doubt_the_silent(self, now: Micros) -> None:
        """Doubt whatever trusts a peer of which nothing was heard for too long."""
        before, beats = now - self._patience, self._beats
        if self._led_by:
            self._take_silent(self._led_by, beats.heard, before)
        if self._followed_by:
            self._take_silent(self._followed_by, beats.acknowledged, before)

    def _take_silent(
        self,
        trusted: dict[NodeId, dict[GroupId, None]],
        last: Callable[[NodeId], Micros | None],
        before: Micros,
    ) -> None:
        for peer in tuple(trusted):
            at = last(peer)
            if at is None or at <= before:
                self._doubted.update(trusted.pop(peer))
