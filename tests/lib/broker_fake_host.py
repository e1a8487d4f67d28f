"""A node for handlers to be tested against: `Host` with replicas that do what the test says.

`FakeHost(hold=True)` keeps every submitted ticket in `held` until the test completes it;
otherwise tickets are completed at once, as by a single replica that leads and never fails.
"""

import asyncio
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.slices import Slices
from ottla.broker.images import BrokerImage, LeaderImage, PartitionImage, TopicImage
from ottla.broker.turn.commands import Command, CreateTopic, Decided
from ottla.broker.turn.tickets import (
    EpochEndTicket,
    FetchTicket,
    ListOffsetsTicket,
    ProduceTicket,
    WatchTicket,
)
from ottla.broker.wire.remarks import Remarks
from ottla.broker.wire.searches import Searches
from ottla.log.types import EpochStart
from ottla.raft.types import Entry, EntryKind

NODE = 1
EPOCH = 7


class FakeReplica:
    """A partition's log: batches stamped in order of completion."""

    def __init__(self, group: int):
        self.group = group
        self.entries: list[Any] = []
        self.log_start_offset = 0
        self.watches: list[Any] = []

    @property
    def high_watermark(self) -> int:
        """One past the last record."""
        return self.entries[-1].payload.last_offset + 1 if self.entries else 0

    def append(self, batch: Any) -> int:
        """Stamp a batch, store it, tell who watches."""
        batch.stamp(self.high_watermark, EPOCH)
        self.entries.append(Entry(len(self.entries) + 1, EPOCH, EntryKind.BATCH, batch))
        for watch in self.watches:
            if not watch.cancelled and self.high_watermark > watch.beyond:
                watch.on_done(watch)
        self.watches = [watch for watch in self.watches if self.high_watermark <= watch.beyond]
        return int(batch.base_offset)

    def first_index(self, offset: int) -> int:
        """Index of the entry that holds this offset; 0 when there is none."""
        return next((e.index for e in self.entries if e.payload.last_offset >= offset), 0)


class FakeHost:
    """See the module's text."""

    def __init__(self, *, hold: bool = False, **settings: Any):
        self.node = NODE
        self.cluster_id: Any = "fake"
        self.config = ClusterConfig(**settings)
        self.remarks = Remarks()
        self.slices = Slices(lambda call: asyncio.get_running_loop().call_soon(call))
        self.searches = Searches(lambda call: call())
        self.hold = hold
        self.held: list[Any] = []
        self.fail_with = ErrorCode.NONE
        self.submitted = 0
        self.controlled: list[Any] = []
        self.control_error = ErrorCode.NONE
        self.creation_delay = 0.0
        self.leader_of_new = NODE
        self.timers = 0
        self.read_error: Exception | None = None
        self.nodes = [BrokerImage(1, "one", 9001), BrokerImage(2, "two", 9002)]
        self.controller_node = NODE
        self.leaders: dict[int, LeaderImage] = {}
        self.replicas: dict[tuple[str, int], FakeReplica] = {}
        self.knows_all = True
        self.images: dict[str, TopicImage] = {}
        self.producer_ids = count(1000)
        self._replica_of: dict[int, FakeReplica] = {}

    # -- what a test arranges

    def add_topic(
        self, name: str, partitions: int = 1, *, hosted: bool = True, leader: int = NODE
    ) -> TopicImage:
        """Make a topic; `hosted` says whether this node has its replicas."""
        first = 100 * (len(self.images) + 1)
        images = tuple(PartitionImage(p, first + p, (1, 2)) for p in range(partitions))
        topic_id = (len(self.images) + 1).to_bytes(16, "big")
        self.images[name] = TopicImage(name, topic_id, images)
        for image in images:
            self.leaders[image.group] = LeaderImage(leader, EPOCH, (1, 2))
            if hosted:
                self.replicas[name, image.partition] = FakeReplica(image.group)
        return self.images[name]

    def set_leader(self, name: str, partition: int, leader: int) -> None:
        """Another node leads the partition now."""
        group = self.images[name].partitions[partition].group
        self.leaders[group] = self.leaders[group]._replace(leader=leader)

    def complete(self, ticket: Any, error: ErrorCode = ErrorCode.NONE, **fields: Any) -> None:
        """Complete a held ticket, with the outcome given or as the log has it."""
        self.held.remove(ticket)
        self._complete(ticket, error, fields)

    # -- Host

    def now(self) -> int:
        """See `Host`."""
        return int(asyncio.get_running_loop().time() * 1_000_000)

    def wall_ms(self) -> int:
        """See `Host`."""
        return 1_700_000_000_000

    def call_at(self, when: int, call: Callable[[], None]) -> Callable[[], None]:
        """See `Host`."""
        self.timers += 1
        return asyncio.get_running_loop().call_at(when / 1_000_000, call).cancel

    def topics(self) -> dict[str, TopicImage]:
        """See `Host`."""
        return self.images

    def knows_all_topics(self) -> bool:
        """See `Host`."""
        return self.knows_all

    def brokers(self, _asked: Iterable[int] = ()) -> list[BrokerImage]:
        """See `Host`."""
        return self.nodes

    def registered(self) -> list[BrokerImage]:
        """See `Host`."""
        return self.nodes

    def controller(self) -> int:
        """See `Host`."""
        return self.controller_node

    def leader(self, group: int) -> LeaderImage:
        """See `Host`."""
        return self.leaders[group]

    def replica(self, topic: str, partition: int) -> FakeReplica | None:
        """See `Host`."""
        return self.replicas.get((topic, partition))

    def submit(self, replica: Any, ticket: Any) -> None:
        """See `Host`."""
        self.submitted += 1
        if self.hold:
            self.held.append(ticket)
            self._replica_of[id(ticket)] = replica
        else:
            self._complete(ticket, self.fail_with, {}, replica)

    def read(self, group: int, first: int, last: int, max_bytes: int) -> list[Entry]:
        """See `Host`."""
        if self.read_error is not None:
            raise self.read_error
        replica = next(r for r in self.replicas.values() if r.group == group)
        found: list[Entry] = []
        size = 0
        for entry in replica.entries[first - 1 : last]:
            if found and size + len(entry.payload) > max_bytes:
                break
            found.append(entry)
            size += len(entry.payload)
        return found

    def control(self, command: Command, done: Decided, deadline: int) -> None:
        """See `Host`."""
        self.controlled.append((command, deadline))

        def decide() -> None:
            if self.control_error is ErrorCode.NONE and isinstance(command, CreateTopic):
                self.add_topic(command.name, leader=self.leader_of_new)
            done(self.control_error, {})

        if self.creation_delay:
            asyncio.get_running_loop().call_later(self.creation_delay, decide)
        else:
            decide()

    def new_producer_id(self, done: Callable[[ErrorCode, int, int], None]) -> None:
        """See `Host`."""
        done(ErrorCode.NONE, next(self.producer_ids), 0)

    # -- outcomes

    def _complete(
        self,
        ticket: Any,
        error: ErrorCode,
        fields: dict[str, Any],
        replica: FakeReplica | None = None,
    ) -> None:
        replica = replica or self._replica_of.pop(id(ticket))
        ticket.error = error
        if error is ErrorCode.NONE and not _OUTCOMES[type(ticket)](replica, ticket):
            return
        for name, value in fields.items():
            setattr(ticket, name, value)
        ticket.on_done(ticket)


def _produce(replica: FakeReplica, ticket: Any) -> bool:
    ticket.base_offset = replica.append(ticket.batch)
    ticket.log_start_offset = replica.log_start_offset
    return True


def _fetch(replica: FakeReplica, ticket: Any) -> bool:
    if 0 <= ticket.current_leader_epoch != EPOCH:
        newer = ticket.current_leader_epoch > EPOCH
        ticket.error = ErrorCode.UNKNOWN_LEADER_EPOCH if newer else ErrorCode.FENCED_LEADER_EPOCH
    elif not replica.log_start_offset <= ticket.offset <= replica.high_watermark:
        ticket.error = ErrorCode.OFFSET_OUT_OF_RANGE
    else:
        ticket.high_watermark = replica.high_watermark
        ticket.log_start_offset = replica.log_start_offset
        ticket.leader_epoch = EPOCH
        ticket.first_index = replica.first_index(ticket.offset)
        ticket.last_index = len(replica.entries)
    return True


def _watch(replica: FakeReplica, ticket: Any) -> bool:
    """False: it is not complete yet."""
    if replica.high_watermark <= ticket.beyond:
        replica.watches.append(ticket)
        return False
    return True


def _list_offsets(replica: FakeReplica, ticket: Any) -> bool:
    ends = {-1: replica.high_watermark, -2: replica.log_start_offset}
    ticket.offset = ends.get(ticket.timestamp, -1)
    ticket.leader_epoch = EPOCH
    return True


def _epoch_end(replica: FakeReplica, ticket: Any) -> bool:
    ticket.end = EpochStart(EPOCH, replica.high_watermark)
    return True


_OUTCOMES: dict[type, Callable[[FakeReplica, Any], bool]] = {
    ProduceTicket: _produce,
    FetchTicket: _fetch,
    WatchTicket: _watch,
    ListOffsetsTicket: _list_offsets,
    EpochEndTicket: _epoch_end,
}


class Hesitant(FakeHost):
    """Cut off together with node 2, it names it to those who ask about what that one leads: the
    first partition of t."""

    def brokers(self, asked: Iterable[int] = ()) -> list[BrokerImage]:
        """See `Host`."""
        return self.nodes if self.images["t"].partitions[0].group in asked else self.nodes[:1]


class FadingHost(FakeHost):
    """It has not heard of node 2 for too long from its `calls`-th look on."""

    def __init__(self, calls: int):
        super().__init__()
        self.calls = calls

    def brokers(self, _asked: Iterable[int] = ()) -> list[BrokerImage]:
        """See `Host`."""
        self.calls -= 1
        return self.nodes if self.calls >= 0 else self.nodes[:1]
