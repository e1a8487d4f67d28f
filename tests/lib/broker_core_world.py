"""A world for `Replica`s: simulated time, a network that loses things, disks that finish late.

Each `Life` is one node from its start to its crash: a `Replica` (real `RaftCore`, real `Partition`)
on a `MemoryStore`, with a small runner that carries effects out in the order that `effects.py`
gives. A crash loses the end of what the disk had not synced; the next `Life` starts from the rest.
Everything random comes from one seeded generator, so a run replays from its seed.

`broker_core_watch.Watch` sees every turn, every applied entry and every answer, and judges them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from broker_core_kernel import Kernel
from broker_core_short_way import follow_at_once, sender_of
from broker_core_watch import Watch
from ottla.broker.counters import Counters
from ottla.broker.partition.in_sync import InSync
from ottla.broker.partition.partition import Partition
from ottla.broker.partition.state import PartitionSettings
from ottla.broker.profiles.named import profile_named
from ottla.broker.turn.effects import Effects, EntriesRead
from ottla.broker.turn.replica import Input, Replica
from ottla.broker.turn.tickets import Ticket
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.store import SyncJob, Write
from ottla.raft.config import RaftConfig
from ottla.raft.core import RaftCore
from ottla.raft.messages import Heartbeat, HeartbeatReply, Message
from ottla.raft.raft_log import RaftLog, bootstrap
from ottla.raft.roles import Role
from ottla.raft.types import Entry, HardState, Micros, NodeId

GROUP = 7
NODES: tuple[NodeId, ...] = (1, 2, 3)
MS: Micros = 1000
SECOND: Micros = 1_000_000
ELECTION = 150 * MS
HEARTBEAT = 20 * MS


@dataclass
class Options:
    """What a world is like; the nemesis may change `loss` and `slow` on the way."""

    min_insync: int = 1
    replica_lag: Micros = 2 * SECOND
    leader_queue_bytes: int = 2000
    max_producers: int = 1000
    producer_expiry: Micros = 86_400 * SECOND
    profile: str = "reference"
    snapshot_chunk: int = 64
    loss: float = 0.0
    twice: float = 0.0
    slow: set[NodeId] = field(default_factory=set)
    """Nodes whose disks take up to a second for a sync."""


class Recorded(Partition):
    """A partition that shows the watch what it applies."""

    def __init__(self, life: Life, settings: PartitionSettings, in_sync: InSync) -> None:
        super().__init__(settings, in_sync)
        self.life = life

    def apply(self, entries: Sequence[Entry], now: Micros) -> None:
        """As `Partition.apply`."""
        self.life.world.watch.on_apply(self.life, entries)
        super().apply(entries, now)


class Life:
    """One node between a start and its crash. See the module's text."""

    def __init__(self, world: World, node: NodeId) -> None:
        self.world = world
        self.node = node
        self.alive = True
        self.paused = False
        self.store = MemoryStore(world.disks[node])
        self._message_sender = sender_of(self)
        self.open: dict[Ticket, Micros] = {}
        self._held: list[Callable[[], None]] = []
        self._marked = False
        self._alarm: Micros | None = None
        self._waiting: list[Effects] = []
        self._syncing: Micros | None = None
        self.machine, self.replica = self._make()
        world.kernel.after(world.rng.randrange(HEARTBEAT), self._beat)
        self.mark()

    def _make(self) -> tuple[Recorded, Replica]:
        options, node, now = self.world.options, self.node, self.world.kernel.now
        settings = PartitionSettings(
            group=GROUP,
            node=node,
            profile=profile_named(options.profile),
            max_message_bytes=1 << 20,
            min_insync_replicas=options.min_insync,
            leader_queue_bytes=options.leader_queue_bytes,
            max_producers=options.max_producers,
            producer_expiry=options.producer_expiry,
            counters=self.world.counters,
        )
        machine = Recorded(self, settings, InSync(options.replica_lag, NODES, node))
        found = [each for each in self.store.groups() if each.group == GROUP]
        entries: Sequence[Entry] = ()
        if not found:
            log, entries = bootstrap(NODES)
            machine.appended(entries)
            self.store.append([Write(GROUP, first=1, entries=entries)])
            hard_state = HardState()
        else:
            stored = found[0]
            if stored.snapshot is not None:
                snapshot = self.store.snapshot(GROUP)
                assert snapshot is not None
                machine.restore(snapshot, now)
            kept = list(self.store.scan(GROUP))
            if kept:
                machine.appended(kept)
            log, hard_state = RaftLog.restore(stored.snapshot, kept), stored.hard_state
        config = RaftConfig(
            group=GROUP,
            node=node,
            election_timeout=ELECTION,
            retransmit=2 * HEARTBEAT,
            snapshot_chunk_bytes=options.snapshot_chunk,
        )
        rng = self.world.rng
        core = RaftCore(config, hard_state=hard_state, log=log, jitter=rng, now=now)
        if not found and node == NODES[0]:
            core.campaign(now)
        return machine, Replica(GROUP, core, machine, entries)

    # ---- inputs

    def when_awake(self, call: Callable[[], None]) -> None:
        """Do it now; a stopped process does it when it goes on, a dead one never."""
        if self.alive:
            if self.paused:
                self._held.append(call)
            else:
                call()

    def submit(self, item: Input) -> None:
        """Into the inbox, and a turn soon."""
        self.replica.submit(item)
        self.mark()

    def ticket(self, ticket: Ticket) -> None:
        """A client's command arrives."""
        self.open[ticket] = ticket.deadline
        self.submit(ticket)

    def mark(self) -> None:
        """A turn soon: what arrives until then shares it."""
        if not self._marked:
            self._marked = True
            delay = self.world.rng.choice((0, 0, 20, 200))
            self.world.kernel.after(delay, lambda: self.when_awake(self._pump))

    def hear(self, message: Message) -> None:
        """A message of another node; beats are vouched for as the real runner does."""
        if isinstance(message, HeartbeatReply) and not message.context:
            self.replica.vouch(message, self.world.kernel.now)
            self.mark()
            return
        if (followed := follow_at_once(self, message)) is not None:
            self._waiting.append(followed)
            self._sync()
            self.mark()
            return
        self.submit(message)
        if isinstance(message, Heartbeat) and not message.context:
            self._pump()
            core = self.replica.core
            if (core.term, core.leader) == (message.term, message.sender):
                reply = HeartbeatReply(GROUP, self.node, message.sender, core.term)
                self.world.send(self.node, message.sender, reply)

    # ---- the runner in miniature

    def _pump(self) -> None:
        self._marked = False
        now = self.world.kernel.now
        effects = self.replica.turn(now)
        if effects.writes:
            self.store.append(effects.writes)
        for message in effects.messages:
            self._message_sender.send(message, effects.writes)
        for ticket in (*effects.answers, *effects.answers_after_append):
            self._answer(ticket)
        if effects.writes or effects.messages_after:
            self._waiting.append(effects)
            self._sync()
        if effects.read is not None:
            read = EntriesRead(self.store.read(GROUP, *effects.read, 300))
            self.world.kernel.after(0, lambda: self.when_awake(lambda: self.submit(read)))
        self.world.watch.on_turn(self)
        self._arm()

    def _answer(self, ticket: Ticket) -> None:
        assert ticket in self.open, f"{ticket} of node {self.node} is answered twice"
        del self.open[ticket]
        ticket.on_done(ticket)

    def _sync(self) -> None:
        if self._syncing is not None or not self._waiting:
            return
        job, turns = self.store.begin_sync(), self._waiting
        self._waiting = []
        if job is None:
            self._durable(turns)
            return
        self._syncing = self.world.kernel.now
        slow = self.node in self.world.options.slow
        span = self.world.rng.randrange(SECOND if slow else 400)
        done = partial(self._synced, job, turns)
        self.world.kernel.after(span, lambda: self.when_awake(done))

    def _synced(self, job: SyncJob, turns: list[Effects]) -> None:
        self._syncing = None
        job.run()
        self.store.finish_sync(job)
        self._durable(turns)
        self._sync()

    def _durable(self, turns: list[Effects]) -> None:
        for effects in turns:
            for message in effects.messages_after:
                own = message.to == self.node
                (self.submit if own else self._message_sender.send)(message)
            if effects.persisted is not None:
                index, term = effects.persisted
                self.replica.synced(index, term, self.world.kernel.now)
        self.mark()

    # ---- time

    def _arm(self) -> None:
        due = self.replica.deadline()
        if due is not None and (self._alarm is None or due < self._alarm):
            self._alarm = due
            self.world.kernel.at(due, lambda: self.when_awake(lambda: self._ring(due)))

    def _ring(self, at: Micros) -> None:
        if self._alarm == at:
            self._alarm = None
        due = self.replica.deadline()
        if due is not None and due <= self.world.kernel.now:
            self._pump()
        else:
            self._arm()

    def _beat(self) -> None:
        if not self.alive:
            return
        core = self.replica.core
        if not self.paused and core.role is Role.LEADER:
            for peer in core.voters:
                if peer != self.node:
                    known = core.commit_known_to(peer)
                    beat = Heartbeat(GROUP, self.node, peer, core.term, known)
                    self.world.send(self.node, peer, beat)
        self.world.kernel.after(HEARTBEAT, self._beat)

    # ---- ends

    def pause(self) -> None:
        """Stop, as by SIGSTOP."""
        self.paused = True

    def resume(self) -> None:
        """Go on with what was held."""
        self.paused = False
        held, self._held = self._held, []
        for place, call in enumerate(held):
            if self.paused:
                self._held.extend(held[place:])
                return
            call()

    def step_down(self) -> None:
        """The driver gives up on its disk (promise-R5)."""
        self.replica.step_down(self.world.kernel.now)
        self.mark()

    def crash(self, keep: int) -> None:
        """Signal 9 and worse: `keep` unsynced appends survive."""
        self.alive = False
        self.open.clear()
        self.world.disks[self.node].crash(keep)


class World:
    """Nodes, disks, network and clock. See the module's text."""

    def __init__(self, seed: int, options: Options | None = None) -> None:
        self.rng = Random(seed)
        self.options = options or Options()
        self.kernel = Kernel()
        self.counters = Counters()
        self.watch = Watch()
        self.disks = {node: MemoryDisk() for node in NODES}
        for disk in self.disks.values():
            disk.defer_syncs = True
        self.cut: set[tuple[NodeId, NodeId]] = set()
        self.lives: dict[NodeId, Life] = {}
        for node in NODES:
            self.start(node)

    def start(self, node: NodeId) -> None:
        """A new life on the node's disk."""
        self.lives[node] = Life(self, node)

    def alive(self) -> list[Life]:
        """The nodes that are not dead, stopped ones included."""
        return list(self.lives.values())

    def crash(self, node: NodeId) -> None:
        """End a life; some of what its disk had not synced is gone."""
        unsynced = self.disks[node].unsynced_appends
        self.lives.pop(node).crash(self.rng.randrange(unsynced + 1))

    def leader(self) -> Life | None:
        """Who leads the latest term and serves."""
        leading = [each for each in self.alive() if each.machine.leadership.synced]
        return max(leading, key=lambda each: each.machine.leadership.term, default=None)

    def send(self, sender: NodeId, to: NodeId, message: object) -> None:
        """Carry a message to its node, late, twice, or never."""
        rng, options = self.rng, self.options
        copies = 1 + (rng.random() < options.twice)
        for _ in range(copies):
            if (sender, to) in self.cut or rng.random() < options.loss:
                continue
            span = rng.choice((50, 100, 100, 300, 3 * MS))
            self.kernel.after(span, partial(self._deliver, sender, to, message))

    def _deliver(self, sender: NodeId, to: NodeId, message: Any) -> None:
        life = self.lives.get(to)
        if life is not None and (sender, to) not in self.cut:
            life.when_awake(lambda: life.hear(message))

    def isolate(self, node: NodeId) -> None:
        """Cut a node off from its peers, both ways."""
        for other in NODES:
            self.cut |= {(node, other), (other, node)}

    def heal(self) -> None:
        """All faults end: everybody runs, hears and is heard."""
        self.cut.clear()
        self.options.loss = self.options.twice = 0.0
        self.options.slow.clear()
        for node in NODES:
            if node not in self.lives:
                self.start(node)
            elif self.lives[node].paused:
                self.lives[node].resume()

    def until(self, condition: Callable[[], Any], within: Micros, what: str) -> None:
        """Run until `condition` holds; fails when it does not within that span."""
        end = self.kernel.now + within
        while not condition():
            assert self.kernel.now < end, f"{what}: not within {within} us"
            self.kernel.run(MS)
