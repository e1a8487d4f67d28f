"""`DeadlineWatch`: when each replica of a node must be checked although no input arrives for it.

Every replica has deadlines: an election, a retransmission, an overdue client. One timer queue has
them all. A *look* at a replica first lets heartbeats vouch: for a follower, that its leader was
heard; for a leader, that its followers were. That usually moves the deadline. The replica gets a
turn only if something is due after that.

With a thousand idle partitions even looks cost too much. So if a look finds that heartbeats vouch
for a replica, it *trusts* the peers concerned: the replica's election or check-quorum deadline is
taken out of the queue. It comes back when there is a reason for doubt. Trust decides nothing:

| reason for doubt | how it is noticed |
|---|---|
| a peer fell silent | `due` looks at all replicas that trust the peer |
| a peer makes another claim, or none | the items of its heartbeat, or a full heartbeat |
| a peer stopped following in a group | a group that its acknowledgement newly names |
| the replica's own role, term or leader changed | the runner calls `doubt` |

A leader that is trusted is still looked at twice per lag time, so that idle followers stay in sync.

A peer that falls silent or comes back may concern thousands of replicas. So one iteration of the
event loop does at most `MOST_LOOKS` looks; the others are due in the next one. A heartbeat with
more items than that is repeated as long as its sender gets no acknowledgement; then only the groups
that it changed are looked at.
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
"""A busy replica is looked at no later than this after a turn."""
AT_ONCE: Micros = 0
"""A time in the past: what is due then is due now."""
MOST_LOOKS = 200
"""Looks in one iteration of the event loop, about 20 us each; the rest is due in the next one."""

Vouched: TypeAlias = Sequence[tuple[NodeId, Micros]]
"""Followers, and when each was heard."""


class DeadlineWatch:
    """See the module's docstring. `hosted_replicas` are the node's replicas. Methods that look at
    replicas yield those that need a turn."""

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
        # Half the shortest timeout, so that silence is noticed before any such deadline.
        self._patience: Micros = config.election_timeout_ms * 1000 // 2
        self._lag_look: Micros = max(config.replica_lag_ms * 1000 // 2, self._patience)
        self._led_by: dict[NodeId, dict[GroupId, None]] = {}
        self._followed_by: dict[NodeId, dict[GroupId, None]] = {}
        self._doubted: dict[GroupId, None] = {}
        """Groups to be looked at, in order."""

    # --- the queue ----------------------------------------------------------------------------

    def next(self) -> Micros | None:
        """When the next look is due."""
        return AT_ONCE if self._doubted else self._timers.next()

    def before_turn(self, hosted: HostedReplica) -> None:
        """Call this before a turn of a replica that trusts or whose look is due. In the turn the
        replica judges its own deadlines, so tell it first what heartbeats vouch for. From then on
        it no longer trusts."""
        hosted.trusting = False
        self.vouch(hosted)

    def after_turn(self, hosted: HostedReplica, now: Micros) -> bool:
        """A replica took a turn: its deadlines may have moved. True: the time of its look changed.

        The deadlines of a busy replica are not computed after every turn. It is looked at within
        `GLANCE`, so what is due in between is noticed that much later; or at the next heartbeat, if
        that is earlier, because the node wakes up for it anyway.
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
        """The replica was removed."""
        self._timers.set(group, None)

    def due(self, now: Micros) -> Iterator[HostedReplica]:
        """Look at all replicas that are due, and at those that trust a peer that fell silent."""
        for group in self._timers.pop_due(now, MOST_LOOKS):
            hosted = self._hosted_replicas[group]
            if self._look(hosted, now):
                yield hosted
        self._doubt_the_silent(now)
        if self._doubted:
            yield from self._look_again(now)

    def _look(self, hosted: HostedReplica, now: Micros) -> bool:
        """Look at one replica. True: it needs a turn."""
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
            # A replica that is dirty gets a turn anyway.
            if hosted is not None and not hosted.dirty and self._look(hosted, now):
                yield hosted

    # --- vouching -----------------------------------------------------------------------------

    def vouch(self, hosted: HostedReplica) -> Vouched:
        """Tell the core what heartbeats vouch for. For a leader, returns its followers and when
        each was heard. The same heartbeat is not told twice: otherwise a candidate would follow the
        old leader again, although that leader has been silent."""
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
        """Whether heartbeats vouch for this replica now; for a leader, those of `followers`. Keeps
        which peers the replica trusts."""
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
        """The replica's role, term or leader changed: it no longer trusts."""
        hosted.trusting = False

    @property
    def doubts(self) -> bool:
        """Whether `due` has replicas left to look at."""
        return len(self._doubted) > 0

    def beat_taken(
        self, beat: Beat, changed: Iterable[GroupId], now: Micros
    ) -> Iterator[HostedReplica]:
        """A peer's heartbeat was taken: look at the replicas that it concerns. `changed`: the
        groups for which its claim changed."""
        if len(beat.items) > MOST_LOOKS:
            return self.doubt_all(changed, now)
        trusted = self._led_by.pop(beat.sender, {}) if beat.full else {}
        return self.doubt_all([*trusted, *(item.group for item in beat.items)], now)

    def doubt_all(self, groups: Iterable[GroupId], now: Micros) -> Iterator[HostedReplica]:
        """Look at these groups; if there are too many, the rest is left to `due` (`doubts`)."""
        self._doubted.update(dict.fromkeys(groups))
        return self._look_again(now)

    def _doubt_the_silent(self, now: Micros) -> None:
        """Doubt all replicas that trust a peer that has been silent for too long."""
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
