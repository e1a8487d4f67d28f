"""`InSyncModel`: bounds on how many replicas are in sync, from what a leader heard and wrote.

**Theory.** A follower is in sync if it was caught up within the lag time: at some moment it held
all that the leader's log held then (decision 0014). The broker finds that moment by marks, which
are cheap. The model keeps everything that matters: the length of the leader's log over time, how
far each follower said that it holds it, and when each was heard. It shares no code with the broker,
and takes messages where the network delivers them. It gives two numbers of replicas:

* `most`: no more than these can be in sync. A follower that lacks an entry was caught up at the
  latest when that entry was written. A follower that lacks nothing was caught up when it was last
  heard, and so was one that had been silent for longer than the lag time when that entry was
  written.
* `least`: these must be in sync. Either the leadership has just begun, or the follower was heard
  within half the lag time, and for three quarters of the lag time it was never more than a quarter
  of it behind. (A mark is reached within one quarter and the next one within another.)

The two differ by delays inside a node that cannot be seen from outside. The model allows `_SLACK`
more for them. If a node takes longer than that for its turns, it is not judged: its bounds are 1
and all of its replicas. Nor is it after a freeze, because what arrived before may count only then.
All times are those of the leader's monotonic clock.

An answer to a produce request with acks=all leaves a row with both numbers, and the number that the
leader counts, which may be too low until it looks at its heartbeats. So does an answer to a
fetch while something had to be held back: it may show no more than was committed when `most` was
last high enough. And so does an answer to a fetch that shows less than the leader knew committed
when it was asked: nothing may be held back while `least` is high enough. Not so with a profile in
which readers wait for all replicas in sync: how far each of them is cannot be judged by bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.broker.heartbeats.messages import SEND_FULL, Beat, BeatAck
from ottla.broker.node.inspection import ReplicaView
from ottla.broker.turn.tickets import FetchTicket, ProduceTicket
from ottla.log.types import Offset
from ottla.raft.messages import AppendReply, SnapshotReply
from ottla.raft.types import GroupId, LogIndex, Micros, NodeId, Term
from ottla.sim.history.history import History
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.life import Life

_NEVER: Micros = -(1 << 62)
_SLACK = 10
"""The part of the lag time allowed for what is not seen from outside: one tenth."""
REFUSED = frozenset({
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
})  # fmt: skip
_JUDGED = REFUSED | {ErrorCode.NONE}


class Bounds(NamedTuple):
    """How many replicas are in sync, the leader included."""

    least: int
    most: int


class Asked(NamedTuple):
    """When a node was asked something, by its own clock, how many replicas were in sync then (None:
    it did not lead), and what it knew committed."""

    at: Micros
    bounds: Bounds | None
    committed: Offset


class _Peer:
    """What a leader heard from one follower."""

    __slots__ = ("behind_at", "heard", "match", "vouched")

    def __init__(self) -> None:
        self.match: LogIndex = 0
        self.heard: Micros = _NEVER
        """When any message from it last arrived."""
        self.vouched: Micros = _NEVER
        """The latest time at which it certainly followed this leader."""
        self.behind_at: Micros = _NEVER
        """When it was last too far behind to be certainly in sync."""


class _Led:
    """One leadership of one partition."""

    def __init__(self, life: Life, replica: ReplicaView, now: Micros):
        self.inc = life.inc
        self.term: Term = replica.term
        self.begun = now
        self.peers = {each: _Peer() for each in replica.voters if each != life.node_id}
        self.thawed = life.thawed
        self.slow_at: Micros = _NEVER
        """When its node last took too long for its turns."""
        self.committed: Offset = 0
        self.showable: Offset = 0
        """The committed end of the log when enough replicas could last be in sync."""
        self._ends: list[LogIndex] = []
        self._times: list[Micros] = []

    @property
    def last(self) -> LogIndex:
        """The end of its log."""
        return self._ends[-1] if self._ends else 0

    def wrote(self, last: LogIndex, now: Micros) -> None:
        """The log ends at `last` from now on."""
        self._ends.append(last)
        self._times.append(now)

    def lacks_since(self, peer: _Peer) -> Micros | None:
        """When the first entry was written that the follower is not known to hold. None: it holds
        all."""
        if peer.match >= self.last:
            return None
        at = self._times[bisect_left(self._ends, peer.match + 1)]
        return max(at, self.begun)


class InSyncModel:
    """See the module's docstring. `partitions`: the number of a partition by group."""

    def __init__(self, history: History, partitions: Mapping[GroupId, int], config: RunConfig):
        self._history = history
        self._partitions = partitions
        self._minimum = config.min_insync
        self._lag = lag = config.replica_lag_ms * 1_000
        self._waits_for_all = config.waits_for_all_in_sync
        self._slack = lag // _SLACK
        self._led: dict[tuple[NodeId, GroupId], _Led] = {}

    # ---- what a leader does and hears

    def leads(self, life: Life, replica: ReplicaView, left: Offset) -> None:
        """A leadership begins. The records below `left` come from earlier leaders. It shows them as
        soon as they are committed, even if too few replicas are in sync, because they may have been
        shown before (0014)."""
        led = _Led(life, replica, life.clockwork.now())
        led.showable = left
        self._led[life.node_id, replica.group] = led

    def wrote(self, life: Life, group: GroupId, last: LogIndex) -> None:
        """The log of its leader has grown."""
        led = self._of(life, group)
        if led is not None:
            now = life.clockwork.now()
            self._look(life, led, now)
            led.wrote(last, now)

    def committed(self, life: Life, group: GroupId, end: Offset) -> None:
        """A leader knows that the records below `end` are committed."""
        led = self._of(life, group)
        if led is not None:
            led.committed = end
            self._show(life, led)

    def heard(self, life: Life, message: Any) -> None:
        """A message arrives at a node."""
        kind = message.__class__
        if kind is AppendReply or kind is SnapshotReply:
            led = self._of(life, message.group)
            if led is not None and message.sender in led.peers:
                self._replied(life, led, message)
        else:
            ack = message.ack if kind is Beat else message
            if ack.__class__ is BeatAck:
                self._beat(life, ack)

    def _replied(self, life: Life, led: _Led, reply: AppendReply | SnapshotReply) -> None:
        peer, now = led.peers[reply.sender], life.clockwork.now()
        self._look(life, led, now)
        peer.heard = now
        done = reply.done if isinstance(reply, SnapshotReply) else reply.success
        match = reply.index if isinstance(reply, SnapshotReply) else reply.match
        if done and reply.term == led.term and match <= led.last:
            peer.match = max(peer.match, match)
            peer.vouched = now
            self._show(life, led)

    def _beat(self, life: Life, ack: BeatAck) -> None:
        refused = {group for group, _ in ack.higher_terms}
        now = life.clockwork.now()
        for (node, group), led in self._led.items():
            if node == life.node_id and led.inc == life.inc and ack.sender in led.peers:
                peer = led.peers[ack.sender]
                self._look(life, led, now)
                peer.heard = now
                vouches = ack.generation != SEND_FULL and group not in refused
                if vouches and ack.sent_at > led.begun:
                    peer.vouched = max(peer.vouched, ack.sent_at)
                self._show(life, led)

    def _of(self, life: Life, group: GroupId) -> _Led | None:
        led = self._led.get((life.node_id, group))
        return led if led is not None and led.inc == life.inc else None

    # ---- what follows

    def bounds(self, life: Life, group: GroupId, since: Micros | None = None) -> Bounds | None:
        """How many replicas are in sync now, or were at any moment after `since`. None: the node
        does not lead."""
        led = self._of(life, group)
        if led is None:
            return None
        now = life.clockwork.now()
        self._look(life, led, now)
        if now - led.slow_at <= self._lag + self._slack:
            return Bounds(1, 1 + len(led.peers))
        least = sum(self._must(led, peer, now) for peer in led.peers.values())
        oldest = (now if since is None else since) - self._lag - self._slack
        return Bounds(1 + least, self._most(led, oldest))

    def _look(self, life: Life, led: _Led, now: Micros) -> None:
        """Note which followers are too far behind, and whether the node is too slow, before that
        changes."""
        if 4 * life.clockwork.backlog() > self._slack or life.thawed != led.thawed:
            led.slow_at, led.thawed = now, life.thawed
        for peer in led.peers.values():
            since = led.lacks_since(peer)
            if since is not None and 4 * (now - since) > self._lag:
                peer.behind_at = now

    def _must(self, led: _Led, peer: _Peer, now: Micros) -> bool:
        if now - led.begun <= self._lag - self._slack:
            return True
        return 2 * (now - peer.vouched) <= self._lag and 4 * (now - peer.behind_at) > 3 * self._lag

    def _most(self, led: _Led, oldest: Micros) -> int:
        if led.begun >= oldest:
            return 1 + len(led.peers)
        count = 1
        for peer in led.peers.values():
            since, heard = led.lacks_since(peer), peer.heard
            if since is not None and since <= heard + self._lag + self._slack:
                heard = min(since, heard + self._lag)
            count += heard >= oldest
        return count

    def _show(self, life: Life, led: _Led) -> None:
        """If enough replicas may be in sync, everything committed may be shown."""
        if led.committed > led.showable:
            now = life.clockwork.now()
            slow = now - led.slow_at <= self._lag + self._slack
            if slow or self._enough(led, self._most(led, now - self._lag - self._slack)):
                led.showable = led.committed

    def _enough(self, led: _Led, count: int) -> bool:
        return count >= min(self._minimum, 1 + len(led.peers))

    # ---- what it answers

    def asked(self, life: Life, group: GroupId) -> Asked:
        """Call this when a request arrives."""
        led = self._of(life, group)
        committed = 0 if led is None else led.committed
        return Asked(life.clockwork.now(), self.bounds(life, group), committed)

    def answered(
        self, life: Life, group: GroupId, ticket: ProduceTicket | FetchTicket, asked: Asked
    ) -> None:
        """Call this when a request is answered."""
        if isinstance(ticket, FetchTicket):
            self._answered_fetch(life, group, ticket, asked)
        elif ticket.acks == -1 and ticket.error in _JUDGED:
            # A batch with a place in the log is judged at its commit, others at some time before.
            bounds = self._between(life, group, asked, None if ticket.index else asked.at)
            if bounds is not None:
                self._add(life, group, ticket.error.name, bounds, value=self._counted(life, group))

    def _counted(self, life: Life, group: GroupId) -> int:
        """How many replicas the leader itself counts as in sync."""
        replica = life.view.replica(group)
        assert replica is not None, "it has just answered"
        return len(replica.of_partition().in_sync(life.clockwork.now()))

    def _between(
        self, life: Life, group: GroupId, asked: Asked, since: Micros | None
    ) -> Bounds | None:
        bounds = self.bounds(life, group, since)
        if bounds is None:
            return None
        return Bounds(min(bounds.least, (asked.bounds or bounds).least), bounds.most)

    def _answered_fetch(
        self, life: Life, group: GroupId, ticket: FetchTicket, asked: Asked
    ) -> None:
        led = self._of(life, group)
        if led is None or ticket.error is not ErrorCode.NONE:
            return
        self._look(life, led, life.clockwork.now())
        self._show(life, led)
        hw = ticket.high_watermark
        if led.committed > led.showable:
            self._add(life, group, "FETCH", None, term=led.term, hw=hw, off=led.showable)
        if hw < asked.committed and not self._waits_for_all:
            bounds = self._between(life, group, asked, asked.at)
            self._add(life, group, "HELD", bounds, term=led.term, hw=hw, off=asked.committed)

    def _add(
        self, life: Life, group: GroupId, code: str, bounds: Bounds | None, **columns: int
    ) -> None:
        replicas = 1 + len(self._led[life.node_id, group].peers)
        self._history.add(
            "insync",
            node=life.node_id,
            inc=life.inc,
            partition=self._partitions[group],
            code=code,
            quorum=min(self._minimum, replicas),
            aux=None if bounds is None else bounds.least,
            acks=None if bounds is None else bounds.most,
            **columns,
        )


def in_sync_model(
    history: History, partitions: Mapping[GroupId, int], config: RunConfig
) -> InSyncModel | None:
    """The model of a run. None: one replica in sync is enough, so nothing is refused."""
    if config.min_insync == 1:
        return None
    return InSyncModel(history, partitions, config)
