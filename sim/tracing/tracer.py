"""The tracer: a run as a trace, the plain events that a specification can check.

It watches where nodes meet the world: the network, the stores, the notices of replicas, and the
tickets of clients. It makes no choice and adds no event to the run, so a run that is traced has the
digest of one that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from ottla.broker.heartbeats.messages import NO_REPLICA, SEND_FULL, Beat, BeatAck
from ottla.broker.partition.reads import LATEST_TIMESTAMP
from ottla.broker.topics.configs import integer
from ottla.broker.turn.tickets import (
    CONSUMER,
    FetchTicket,
    ListOffsetsTicket,
    ProduceTicket,
    Ticket,
)
from ottla.broker.turn.watcher import Watcher
from ottla.log.checksum import crc32c
from ottla.log.memory_store import MemorySyncJob
from ottla.log.store import SyncJob, Write
from ottla.log.types import RecordBatch
from ottla.raft import messages as raft
from ottla.raft.raft_log import decode_voters
from ottla.raft.types import NO_NODE, Entry, EntryKind, GroupId, NodeId
from ottla.sim.specification import trace
from ottla.sim.world.life import Life, when_awake
from ottla.sim.world.log_watch import LogWatch
from ottla.sim.world.observer import Observer
from ottla.sim.world.world import World

_CHECKED = 21
"""A batch's checksum is about the bytes from here on."""


class Tracer:
    """Traces this world, which is not booted yet. `take`: called with each event."""

    def __init__(self, world: World, take: Callable[[trace.Event], None]) -> None:
        self._world = world
        self._take = take
        self._thawed: dict[Life, int] = {}
        self._slow_after = world.config.replica_lag_ms * 1_000 // 40
        world.network.watchers.append(self)
        world.observer = _TracedObserver(world, self)
        world.watch_log = partial(_TracedLog, self)

    def add(
        self, kind: str, life: Life, body: trace.Body, group: GroupId = trace.ALL_GROUPS
    ) -> None:
        """Something happens now."""
        slow = (
            self._slow_after < life.clockwork.backlog() or self._thawed.get(life, 0) != life.thawed
        )
        self._thawed[life] = life.thawed
        now = life.clockwork.now()
        self._take(trace.Event(kind, life.node_id, group, now, body, slow))

    def sent(self, sender: NodeId, to: NodeId, message: Any, *, lost: bool) -> None:
        """See `NetworkWatcher`."""
        self._message("send", sender, message)

    def received(self, to: NodeId, message: Any) -> None:
        """See `NetworkWatcher`."""
        when_awake(self._world.lives.get(to), self._message, "receive", to, message)

    def _message(self, kind: str, node: NodeId, message: Any) -> None:
        """A living node sends or receives a message."""
        life = self._world.lives.get(node)
        if life is None or not life.alive:
            return
        for group, told in told_of(message):
            self.add(kind, life, told, group)
        ack = message.ack if message.__class__ is Beat else message
        if kind == "receive" and ack.__class__ is BeatAck:
            vouches = ack.generation != SEND_FULL
            others = tuple([group for group, _ in ack.higher_terms])
            alive = _plain("alive", ack, 0, context=ack.sent_at, yes=vouches, span=others)
            self.add(kind, life, alive)


class _TracedLog(LogWatch):
    def __init__(self, tracer: Tracer, observer: Observer, life: Life):
        super().__init__(observer, life)
        self._tracer = tracer

    def appended(self, writes: Sequence[Write]) -> None:
        """As `LogWatch.appended`."""
        life = self._life
        medium = life.disk.medium
        number = medium.synced_appends + len(medium.undo)
        groups: dict[GroupId, list[trace.Write]] = {}
        for write in writes:
            traced = _write(number, write, self._successor(write.group))
            groups.setdefault(write.group, []).append(traced)
        for group, told in groups.items():
            self._tracer.add("write", life, tuple(told), group)
        super().appended(writes)

    def _successor(self, group: GroupId) -> NodeId:
        replica = self._replica(group)
        return NO_NODE if replica is None else replica.successor

    def synced(self, job: SyncJob) -> None:
        """As `LogWatch.synced`."""
        self._tracer.add("durable", self._life, cast(MemorySyncJob, job).appends)
        super().synced(job)


class _TracedObserver(Observer):
    def __init__(self, world: World, tracer: Tracer):
        super().__init__(world.history, world.config)
        self.tickets = self
        self._tracer = tracer
        self._cluster_config = world.cluster_config
        self._commits: dict[tuple[Life, GroupId], int] = {}
        self._refs: dict[Ticket, int] = {}

    def started(self, life: Life) -> None:
        """As `Observer.started`."""
        found = []
        for each in life.store.groups():
            entries = tuple(map(_kept, life.store.scan(each.group)))
            state = each.hard_state
            found.append(trace.Found(each.group, state.term, state.vote, each.first_index, entries))
        self._tracer.add("start", life, tuple(found))
        super().started(life)

    def watch(self, life: Life) -> None:
        """As `Observer.watch`, for all groups."""
        super().watch(life)
        life.node.watch(Watcher(applied=partial(self._committed, life)))

    def _committed(self, life: Life, group: GroupId) -> None:
        replica = life.view.replica(group)
        if replica is None:  # its topic is deleted, and requests that wait are answered
            return
        if replica.commit > self._commits.get((life, group), 0):
            self._commits[life, group] = replica.commit
            self._tracer.add("commit", life, replica.commit, group)

    def asks(self, life: Life, group: GroupId, ticket: Ticket) -> None:
        """See `TicketWatcher`. Readers' questions about the end of the log are followed, too."""
        if isinstance(ticket, ListOffsetsTicket):
            if ticket.timestamp != LATEST_TIMESTAMP or ticket.asker != CONSUMER:
                return
            done = ticket.on_done

            def told(ticket: ListOffsetsTicket) -> None:
                self.answers(life, group, ticket)
                done(ticket)

            ticket.on_done = told
        if isinstance(ticket, _FOLLOWED):
            ref = self._refs[ticket] = len(self._refs)
            offset = ticket.offset if isinstance(ticket, FetchTicket) else 0
            acks = ticket.acks if isinstance(ticket, ProduceTicket) else 0
            asked = trace.Ask(ref, offset, acks, self._minimum(life, group))
            self._tracer.add("ask", life, asked, group)

    def _minimum(self, life: Life, group: GroupId) -> int:
        """min.insync.replicas of the topic."""
        placed, config = life.view.placed(group), self._cluster_config
        configs = {} if placed is None else placed[0].configs
        return integer("min.insync.replicas", configs, config)

    def answers(self, life: Life, group: GroupId, ticket: Ticket) -> None:
        """See `TicketWatcher`."""
        self._committed(life, group)  # answers come before the node looks
        self._tracer.add("answer", life, _answer(self._refs[ticket], ticket), group)


_FOLLOWED = (ProduceTicket, FetchTicket, ListOffsetsTicket)


def _answer(ref: int, ticket: Ticket) -> trace.Answer:
    error = ticket.error.name
    if isinstance(ticket, ProduceTicket):
        placed, offset = ticket.index > 0, ticket.base_offset
        return trace.Answer(ref, "produce", error, placed, offset)
    if isinstance(ticket, FetchTicket):
        end, last = ticket.high_watermark, ticket.last_index
        return trace.Answer(ref, "fetch", error, offset=end, last=last)
    assert isinstance(ticket, ListOffsetsTicket), "no other is followed"
    return trace.Answer(ref, "latest", error, offset=ticket.offset)


def _kept(entry: Entry) -> trace.Entry:
    """An entry as a disk holds it: its checksum is computed, not believed."""
    told, payload = _entry(entry), entry.payload
    if isinstance(payload, RecordBatch):
        told = told._replace(mark=crc32c(payload.data[_CHECKED:]))
    return told


def _entry(entry: Entry) -> trace.Entry:
    payload = entry.payload
    if isinstance(payload, RecordBatch):
        return trace.Entry(entry.term, payload.crc, payload.last_offset_delta + 1)
    return trace.Entry(entry.term, crc32c(payload) << 3 | entry.kind)


def _write(number: int, write: Write, successor: NodeId) -> trace.Write:
    state, snapshot = write.hard_state, write.snapshot
    voters: tuple[NodeId, ...] = () if snapshot is None else snapshot.meta.voters
    if write.entries and write.entries[0].kind is EntryKind.CONFIGURATION:
        voters = decode_voters(write.entries[0])
    return trace.Write(
        number,
        None if state is None else (state.term, state.vote),
        None if snapshot is None else (snapshot.meta.index, snapshot.meta.term),
        write.reset,
        write.first,
        tuple(map(_entry, write.entries)),
        voters,
        write.delete,
        successor,
    )


def told_of(message: Any) -> list[tuple[GroupId, trace.Message]]:
    """A message between nodes as the specification sees it: a heartbeat is about many groups."""
    kind = message.__class__
    if kind is Beat:
        found = [
            (item.group, _plain("heartbeat?", message, item.term, commit=item.commit))
            for item in message.items
            if item.leading and item.commit != NO_REPLICA
        ]
        return found + (told_of(message.ack) if message.ack is not None else [])
    if kind is BeatAck:
        return [(group, _plain("heartbeat", message, term)) for group, term in message.higher_terms]
    teller = _TELLERS.get(kind)
    return [] if teller is None else [(message.group, teller(message))]


def _plain(kind: str, message: Any, term: int, **more: Any) -> trace.Message:
    return trace.Message(kind, message.sender, message.to, term, **more)


_TELLERS = {
    raft.RequestVote: lambda m: _plain(
        "vote?",
        m,
        m.term,
        log_index=m.last_index,
        log_term=m.last_term,
        pre=m.pre,
        transfer=m.transfer,
    ),
    raft.VoteReply: lambda m: _plain("vote", m, m.term, yes=m.granted, pre=m.pre),
    raft.AppendEntries: lambda m: _plain(
        "append?",
        m,
        m.term,
        log_index=m.prev_index,
        log_term=m.prev_term,
        commit=m.commit,
        entries=tuple(map(_entry, m.entries)),
    ),
    raft.AppendReply: lambda m: _plain("append", m, m.term, yes=m.success, log_index=m.match),
    raft.Heartbeat: lambda m: _plain("heartbeat?", m, m.term, commit=m.commit, context=m.context),
    raft.HeartbeatReply: lambda m: _plain("heartbeat", m, m.term, context=m.context),
    raft.InstallSnapshot: lambda m: _plain(
        "snapshot?",
        m,
        m.term,
        log_index=m.index,
        log_term=m.snapshot_term,
        span=(m.offset, m.offset + m.length, m.total),
    ),
    raft.SnapshotReply: lambda m: _plain(
        "snapshot", m, m.term, log_index=m.index, yes=m.done, span=(0, m.received, 0)
    ),
    raft.TimeoutNow: lambda m: _plain("timeout-now", m, m.term),
}
