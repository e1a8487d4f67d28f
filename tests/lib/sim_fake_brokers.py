"""Brokers whose answers a test gives, at the other end of the simulator's own connections.

ApiVersions, metadata and producer ids are answered at once, with what the test has set. All other
requests wait in `asked` until the test answers them, breaks their connection, or leaves them open.
Answers leave each connection in the order of its requests, so an open request delays later ones.
Choices come only from a tape: every path takes half a millisecond each way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import (
    ApiVersionsAnswer,
    InitProducerIdAnswer,
    MetadataAnswer,
    MetadataBroker,
    PartitionDescribed,
    PartitionProduced,
    ProduceAnswer,
    TopicDescribed,
    TopicProduced,
)
from ottla.broker.wire.requests import (
    ApiVersionsRequest,
    InitProducerIdRequest,
    MetadataRequest,
)
from ottla.log.record_batch import read_batch
from ottla.log.records import records_of
from ottla.log.types import RecordBatch
from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.clients.worker import Surroundings
from ottla.sim.history.history import Event, History
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.batch import value_of
from ottla.sim.world.frames import TOPIC, Frame, batches_of, partition_of
from ottla.sim.world.kernel import Kernel
from ottla.sim.world.tcp import ClientNetwork, Connection

MS = 1_000
ONE_WAY = MS // 2
CONFIG = RunConfig(client_rtt_us=2 * ONE_WAY, client_jitter_us=0, batch_records=1)


@dataclass(eq=False)
class Asked:
    """One request at a node."""

    brokers: FakeBrokers
    served: _Served
    number: int
    """The correlation id."""
    request: Any
    answer: Any = None

    @property
    def partition(self) -> int:
        """The one partition that it is about."""
        found = partition_of(self.request)
        assert found is not None, self.request
        return found

    @property
    def part(self) -> Any:
        """What is asked of the one partition."""
        (topic,) = self.request.topics
        (part,) = topic.partitions
        return part

    @property
    def node(self) -> int:
        """Who was asked."""
        return self.connection.node

    @property
    def connection(self) -> Connection:
        """Where it came from."""
        return self.served.connection

    def say(self, answer: Any) -> None:
        """Answer this."""
        if self in self.brokers.asked:
            self.brokers.asked.remove(self)
        self.answer = answer
        self.served.flush()

    def drop(self) -> None:
        """The connection breaks, and with it all that was asked on it."""
        asked = self.brokers.asked
        self.brokers.asked = deque(e for e in asked if e.connection is not self.connection)
        self.connection.reset("reset")

    def produced(
        self,
        error: ErrorCode = ErrorCode.NONE,
        base: int = 0,
        hint: tuple[int, int] = (0, -1),
        log_start: int = 0,
    ) -> None:
        """Answer a produce request: all its partitions alike."""
        base = -1 if error else base
        parts = [
            PartitionProduced(
                partition,
                error,
                base,
                log_start_offset=log_start,
                leader=hint[0] or -1,
                leader_epoch=hint[1],
            )
            for partition, _ in batches_of(self.request)
        ]
        self.say(ProduceAnswer((TopicProduced(TOPIC, parts),)))

    @property
    def batches(self) -> dict[int, RecordBatch]:
        """What is to be produced, by partition."""
        found = {}
        for partition, data in batches_of(self.request):
            batch = read_batch(data)
            assert isinstance(batch, RecordBatch)
            found[partition] = batch
        return found

    @property
    def batch(self) -> RecordBatch:
        """The one batch of the request."""
        (batch,) = self.batches.values()
        return batch

    @property
    def values(self) -> list[int]:
        """What the one batch holds."""
        return [value_of(each.value or b"") for each in records_of(self.batch)]

    @property
    def told(self) -> tuple[list[int], int, int]:
        """Values, epoch and base sequence of the one batch."""
        return self.values, self.batch.producer_epoch, self.batch.base_sequence


class FakeBrokers:
    """See the module's text."""

    def __init__(
        self,
        config: RunConfig = CONFIG,
        nodes: Sequence[int] = (1, 2, 3),
        tape: Tape | None = None,
    ):
        self.config = config
        self.nodes = tuple(nodes)
        self.kernel = Kernel()
        self.history = History(lambda: self.kernel.now)
        choices = Replayed(tape or Tape())
        self.network = ClientNetwork(
            self.kernel, choices, config, self._serve, lambda node: node not in self.down
        )
        self.leaders = dict.fromkeys(range(config.partitions), (1, 1))
        """What every node says who leads what, and since when; but see `believes`."""
        self.believes: dict[int, dict[int, tuple[int, int]]] = {}
        """What some nodes say instead."""
        self.names: dict[int, tuple[int, ...]] = {}
        """Which nodes some nodes name in place of all."""
        self.ids = [(ErrorCode.NONE, each, 0) for each in range(100, 110)]
        self.id_requests = 0
        self.metadata_asked: list[int] = []
        """Which node was asked for metadata, each time."""
        self.down: list[int] = []
        self.silent: list[int] = []
        """Nodes that accept connections and never answer anything."""
        self.asked: deque[Asked] = deque()
        self._stream = choices.stream("client")

    def surroundings(self) -> Surroundings:
        """What a client is handed."""
        return Surroundings(
            self.kernel, self.history, self.network, self.config, self.nodes, self._stream
        )

    # ---- time

    def run(self, ms: float) -> None:
        """Let so much time pass."""
        self.kernel.run(self.kernel.now + round(ms * MS))

    def wait(self, condition: Callable[[], bool], within_ms: int = 60_000) -> None:
        """Let time pass until something is so."""
        end = self.kernel.now + within_ms * MS
        while not condition():
            assert self.kernel.now < end, "it never came"
            self.run(0.1)

    def next(self) -> Asked:
        """The oldest request that waits for its answer, as soon as there is one."""
        self.wait(lambda: bool(self.asked))
        return self.asked[0]

    def take(self, count: int) -> list[Asked]:
        """Exactly so many requests, that all wait for their answers together."""
        self.wait(lambda: len(self.asked) >= count)
        self.run(3)
        assert len(self.asked) == count, [each.request for each in self.asked]
        return list(self.asked)

    def nothing_for(self, ms: float) -> None:
        """Nothing more is asked for so long."""
        before = list(self.asked)
        self.run(ms)
        assert list(self.asked) == before, [each.request for each in self.asked]

    # ---- what came of it

    def rows(self, *kinds: str) -> list[Event]:
        """The history's rows of these kinds."""
        return [row for row in self.history.rows if row.kind in kinds]

    def ends(self) -> list[tuple[str, int | None, str | int | None]]:
        """How each op ended: kind, op, and its offset or code."""
        return [(r.kind, r.op, r.off if r.kind == "ok" else r.code) for r in self.ended()]

    def ended(self) -> list[Event]:
        """The rows of ops that ended."""
        return self.rows("ok", "fail", "info")

    # ---- the nodes

    def _serve(self, connection: Connection) -> Any:
        return None if connection.node in self.down else _Served(self, connection)

    def answer_to(self, node: int, request: Any) -> Any:
        """What needs no test to be answered; None for the rest."""
        if isinstance(request, ApiVersionsRequest):
            return ApiVersionsAnswer(ErrorCode.NONE, ())
        if isinstance(request, MetadataRequest):
            self.metadata_asked.append(node)
            return self._metadata(node)
        if isinstance(request, InitProducerIdRequest):
            self.id_requests += 1
            return InitProducerIdAnswer(*self.ids[self.id_requests - 1])
        return None

    def _metadata(self, node: int) -> MetadataAnswer:
        believed = self.believes.get(node, self.leaders)
        parts = [
            PartitionDescribed(ErrorCode.NONE, each, leader or -1, epoch, (), (), ())
            for each, (leader, epoch) in believed.items()
        ]
        brokers = [MetadataBroker(each, "node", each) for each in self.names.get(node, self.nodes)]
        return MetadataAnswer((TopicDescribed(ErrorCode.NONE, TOPIC, partitions=parts),), brokers)


class _Served:
    """The node's end of one connection."""

    def __init__(self, brokers: FakeBrokers, connection: Connection):
        self.connection = connection
        self._brokers = brokers
        self._pending: deque[Asked] = deque()

    def arrived(self, frame: Frame) -> None:
        brokers, request = self._brokers, frame.value
        if self.connection.node in brokers.silent:
            return
        asked = Asked(brokers, self, frame.number, request)
        asked.answer = brokers.answer_to(self.connection.node, request)
        if asked.answer is None:
            brokers.asked.append(asked)
        if getattr(request, "acks", -1) != 0:
            self._pending.append(asked)
        self.flush()

    def flush(self) -> None:
        """Let go what may go, in order."""
        while self._pending and self._pending[0].answer is not None:
            asked = self._pending.popleft()
            self.connection.answer(Frame(asked.number, asked.answer))

    def lost(self) -> None:
        """Nobody is told: the test sees what it wants to see."""
