"""The tape of turns: everything that the replicas of a run were given, in order.

A replica is driven by exactly ten calls (`broker/turn/replica.py`). `taped` makes a node's factory
build replicas that record each call, with the node's clock, with what a turn drained from its
inbox, and with every number drawn for an election timeout. The result of a call is recorded in
short, so that a player sees at once where it differs (`player.py`).

A life begins with what its disk held. A log is identified by the index and term of its entries (log
matching), so the tape keeps only those, and the player its own entries.

Tickets are copied when a turn drains them: what the machine writes into them is not on the tape.
The controller's group is taped like the partitions. Its machine asks one more thing, which nodes
have not been heard of, and the answers are on the tape, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple

from ottla.broker.config import ClusterConfig
from ottla.broker.controller.controller import CONTROLLER_GROUP, Controller
from ottla.broker.images import TopicImage
from ottla.broker.node.inspection import ReplicaView
from ottla.broker.node.replica_factory import LogLimits, Opening, ReplicaFactory, Writing
from ottla.broker.turn.effects import Effects
from ottla.broker.turn.machine import Machine
from ottla.broker.turn.replica import Replica
from ottla.broker.turn.tickets import ControlTicket, ProduceTicket, Ticket, WatchTicket
from ottla.log.store import LogStore
from ottla.log.types import RecordBatch
from ottla.raft.config import JitterSource
from ottla.raft.messages import AppendEntries, AppendReply, Heartbeat, HeartbeatReply
from ottla.raft.types import Entry, GroupId, HardState, LogIndex, Micros, NodeId, Snapshot, Term

Short = tuple[Any, ...]
"""The result of a call: compared, and printed if it differs."""


@dataclass(slots=True)
class Line:
    """One life of one replica."""

    node: NodeId
    group: GroupId
    topic: TopicImage | None
    """None: the controller's group."""
    replicas: tuple[NodeId, ...]
    now: Micros
    """The node's clock when the replica was made."""
    kept: tuple[tuple[LogIndex, Term], ...]
    """Its log on disk when it began: index and term."""
    hard_state: HardState | None
    """None: the group is new."""
    snapshot: Snapshot | None
    limits: LogLimits
    drawn: list[int] = field(default_factory=list)
    """Numbers drawn for election timeouts."""
    cluster_id: str = ""
    """The cluster id that a controller gets when it is made."""
    unheard: list[tuple[NodeId, ...]] = field(default_factory=list)
    """The answers to a controller that asked which nodes are not heard of."""


class Step(NamedTuple):
    """One call."""

    at: Micros
    """The driver's own time."""
    line: int
    """The place of the life on the tape."""
    call: str
    arguments: tuple[Any, ...]
    came: Short


class End(NamedTuple):
    """The final state of a replica."""

    log: tuple[tuple[LogIndex, Term, int, bytes], ...]
    """Every entry: index, term, kind and bytes."""
    producers: int
    """Digest of the producer state; of a controller: of all that it has decided."""
    high_watermark: int
    """High watermark; of a controller: the last applied index."""


@dataclass(slots=True)
class TurnTape:
    """See the module's docstring."""

    lines: list[Line] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    ends: dict[tuple[NodeId, GroupId], End] = field(default_factory=dict)
    """The final state of each replica that is alive at the end, from its last life."""


class Recorder:
    """Makes a `TurnTape` of one run. `now` is the driver's own time."""

    def __init__(self, now: Callable[[], Micros]):
        self.tape = TurnTape()
        self.now = now
        self._last: dict[tuple[NodeId, GroupId], tuple[TapedReplica, LogStore]] = {}

    def begin(self, line: Line) -> None:
        """A life begins."""
        self.tape.lines.append(line)
        self.note(len(self.tape.lines) - 1, "begin", (), ())

    def lives(self, line: Line, replica: TapedReplica, store: LogStore) -> None:
        """The life's replica was made."""
        replica.recorder, replica.line = self, len(self.tape.lines) - 1
        replica.watched, replica.watches = 0, []
        self._last[line.node, line.group] = replica, store

    def note(self, line: int, call: str, arguments: tuple[Any, ...], came: Short) -> None:
        """A call was made: add it."""
        self.tape.steps.append(Step(self.now(), line, call, arguments, came))

    def finish(self, nodes: Collection[NodeId]) -> TurnTape:
        """The run is over: add the final state of every replica on these nodes. Leave out dead
        nodes, because a crash takes from a disk what no call has reported. Replicas of deleted
        topics are left out, too: the node, not the replica, makes the store drop them."""
        for (node, group), (replica, store) in sorted(self._last.items()):
            if node in nodes and any(each.group == group for each in store.groups()):
                self.tape.ends[node, group] = end_of(replica, list(store.scan(group)))
        return self.tape


class TapedReplica(Replica):
    """A replica whose calls are recorded."""

    __slots__ = ("line", "recorder", "watched", "watches")

    recorder: Recorder
    line: int
    watched: int
    """How many watches turns have drained."""
    watches: list[tuple[int, WatchTicket]]
    """Those of them that may still be cancelled, each with its number."""

    def look_back(self) -> None:
        """Record which watches readers have cancelled since the last call."""
        gone = tuple(number for number, watch in self.watches if watch.cancelled)
        if gone:
            self.watches = [each for each in self.watches if not each[1].cancelled]
            self.recorder.note(self.line, "take_back", gone, ())

    def turn(self, now: Micros) -> Effects:
        """As `Replica.turn`."""
        self.look_back()
        for item in self._inbox:
            if isinstance(item, WatchTicket):
                self.watches.append((self.watched, item))
                self.watched += 1
        drained = tuple(copied(item) for item in self._inbox)
        effects = super().turn(now)
        self.recorder.note(self.line, "turn", (now, drained), short_of(effects))
        return effects

    def follow(self, message: AppendEntries, now: Micros) -> AppendReply | None:
        """As `Replica.follow`."""
        self.look_back()
        reply = super().follow(message, now)
        if reply is not None:
            self.recorder.note(self.line, "follow", (message, now), (reply.match,))
        return reply

    def synced(self, index: LogIndex, term: Term, now: Micros) -> bool:
        """As `Replica.synced`."""
        due = super().synced(index, term, now)
        self.recorder.note(self.line, "synced", (index, term, now), (due,))
        return due

    def vouch(self, message: Heartbeat | HeartbeatReply, at: Micros) -> None:
        """As `Replica.vouch`."""
        super().vouch(message, at)
        self.recorder.note(self.line, "vouch", (message, at), ())

    def step_down(self, now: Micros) -> None:
        """As `Replica.step_down`."""
        super().step_down(now)
        self.recorder.note(self.line, "step_down", (now,), ())

    def campaign(self, now: Micros) -> None:
        """As `Replica.campaign`."""
        super().campaign(now)
        self.recorder.note(self.line, "campaign", (now,), ())

    def transfer(self, to: NodeId, now: Micros) -> bool:
        """As `Replica.transfer`."""
        begun = super().transfer(to, now)
        self.recorder.note(self.line, "transfer", (to, now), (begun,))
        return begun

    def deadline(self) -> Micros | None:
        """As `Replica.deadline`. It is recorded because afterwards turns before that time do not
        check the clock."""
        self.look_back()
        due = super().deadline()
        self.recorder.note(self.line, "deadline", (), (due,))
        return due

    def work_deadline(self) -> Micros | None:
        """As `Replica.work_deadline`."""
        self.look_back()
        due = super().work_deadline()
        self.recorder.note(self.line, "work_deadline", (), (due,))
        return due

    def close(self, now: Micros) -> list[Ticket]:
        """As `Replica.close`."""
        self.look_back()
        waiting = tuple(copied(item) for item in self._inbox)
        answers = super().close(now)
        told = tuple(int(each.error) for each in answers if isinstance(each, ProduceTicket))
        self.recorder.note(self.line, "close", (now, waiting), told)
        return answers


class TapedFactory(ReplicaFactory):
    """A node's factory, of replicas whose calls are recorded."""

    recorder: Recorder

    def __init__(self, node: NodeId, config: ClusterConfig, **others: Any):
        super().__init__(node, config, **others)
        self._lines: dict[GroupId, Line] = {}
        """Lines of replicas that are being opened."""
        self._cluster_id = ""
        self._unheard: list[tuple[NodeId, ...]] = []
        """The answers to the controller of this life about nodes not heard of."""

    def make_controller(
        self, cluster_id: str, nodes: Sequence[NodeId], unheard: Callable[[], Sequence[NodeId]]
    ) -> Controller:
        """As `ReplicaFactory.make_controller`; its questions are recorded once it has its
        replica."""

        def noted() -> Sequence[NodeId]:
            self._unheard.append(tuple(unheard()))
            return self._unheard[-1]

        self._cluster_id = cluster_id
        return super().make_controller(cluster_id, nodes, noted)

    def controller(
        self, machine: Machine, nodes: Sequence[NodeId], now: Micros, write: Writing
    ) -> Replica:
        """As `ReplicaFactory.controller`."""
        line = self._lines[CONTROLLER_GROUP] = self._line(None, CONTROLLER_GROUP, nodes, now)
        line.cluster_id, line.unheard = self._cluster_id, self._unheard
        return super().controller(machine, nodes, now, write)

    def begin(
        self, topic: TopicImage, group: GroupId, replicas: Sequence[NodeId], now: Micros
    ) -> Opening:
        """As `ReplicaFactory.begin`."""
        self._lines[group] = self._line(topic, group, replicas, now)
        return super().begin(topic, group, replicas, now)

    def finish(self, opening: Opening, now: Micros) -> Replica:
        """As `ReplicaFactory.finish`."""
        line = self._lines.pop(opening.group)
        line.now = now
        return self._taped(line, partial(super().finish, opening, now))

    def _line(
        self, topic: TopicImage | None, group: GroupId, replicas: Sequence[NodeId], now: Micros
    ) -> Line:
        stored = self._stored.get(group)
        return Line(
            self._node,
            group,
            topic,
            tuple(replicas),
            now,
            tuple((each.index, each.term) for each in self._store.scan(group)) if stored else (),
            stored.hard_state if stored else None,
            self._store.snapshot(group) if stored else None,
            self.limits,
        )

    def _taped(self, line: Line, make: Callable[[], Replica]) -> Replica:
        self.recorder.begin(line)
        jitter, self._jitter = self._jitter, NotedJitter(self._jitter, line.drawn)
        self.replica_type = TapedReplica
        try:
            replica = make()
        finally:
            self._jitter, self.replica_type = jitter, Replica
        assert isinstance(replica, TapedReplica), "the type that was asked for"
        self.recorder.lives(line, replica, self._store)
        return replica


class NotedJitter:
    """A source of jitter whose numbers are recorded."""

    def __init__(self, source: JitterSource, drawn: list[int]):
        self._source = source
        self._drawn = drawn

    def randrange(self, stop: int, /) -> int:
        """As `JitterSource.randrange`."""
        number = self._source.randrange(stop)
        self._drawn.append(number)
        return number


def taped(recorder: Recorder) -> type[TapedFactory]:
    """The factory to use instead of `ReplicaFactory`."""
    return type("Taped", (TapedFactory,), {"recorder": recorder})


def unheard(_: Ticket) -> None:
    """Nobody waits for a copied ticket."""


def copied(item: Any) -> Any:
    """A copy of an item of an inbox that shares nothing that a turn changes."""
    if not isinstance(item, Ticket):
        return item
    twin = copy(item)
    twin.on_done, twin.owner = unheard, None
    if isinstance(twin, ProduceTicket):
        twin.batch = copy(twin.batch)
        twin.on_enqueued = None
    return twin


def short_of(effects: Effects) -> Short:
    """The effects of a turn in short; what readers are told follows from their own state."""
    return (
        tuple(type(each).__name__ for each in (*effects.messages, *effects.messages_after)),
        tuple(
            (each.first, len(each.entries), each.truncate, each.compact_to, each.hard_state)
            for each in effects.writes
        ),
        tuple(
            (int(each.error), each.base_offset if isinstance(each, ProduceTicket) else each.index)
            for each in (*effects.answers, *effects.answers_after_append)
            if isinstance(each, ProduceTicket | ControlTicket)
        ),
        effects.persisted,
        effects.read,
    )


def end_of(replica: Replica, log: Sequence[Entry]) -> End:
    """The final state of a replica, from its log on disk."""
    view = ReplicaView(replica)
    entries = tuple((each.index, each.term, int(each.kind), _bytes(each.payload)) for each in log)
    decisions = view.decisions
    if decisions is not None:
        decided = blake2b(decisions.encode(), digest_size=8).digest()
        return End(entries, int.from_bytes(decided, "big"), decisions.applied)
    made = view.of_partition()
    return End(entries, made.producers_digest(), made.high_watermark)


def _bytes(payload: Any) -> bytes:
    if isinstance(payload, RecordBatch):
        return b"%d %d " % (payload.base_offset, payload.leader_epoch) + bytes(payload.data)
    return bytes(payload)
