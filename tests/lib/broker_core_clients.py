"""Clients of a `broker_core_world.World`: idempotent producers as the Kafka clients write them.

A producer keeps its unacknowledged batches in the order of their sequences, with up to five of them
in flight on one connection. Failed batches are sent again in order and one at a time, after all
later ones are answered or given up. The Java client does so, because a retried batch must still be
in the broker's window of five. Silence closes the connection. What was sent on it may arrive all
the same, even much later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from broker_core_world import MS, NODES, World
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import ProduceTicket
from ottla.log.build import build_batch
from ottla.log.record_batch import read_batch
from ottla.log.types import RecordBatch
from ottla.raft.types import Micros, NodeId

RETRIABLE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    }
)
CLIENT_TIMEOUT = 400 * MS


def parsed(data: bytes) -> RecordBatch:
    """A fresh batch, as a node reads it from the wire."""
    batch = read_batch(data)
    assert isinstance(batch, RecordBatch), f"{batch}"
    return batch


class Connection:
    """Requests arrive in order, answers leave in the order of the requests; either may be late."""

    def __init__(self, world: World, node: NodeId) -> None:
        self.world = world
        self.node = node
        self.open = True
        self._life = world.lives.get(node)
        self._arrives: Micros = 0
        self._answered: Micros = 0
        self._answers: deque[tuple[ProduceTicket, Callable[[ProduceTicket], None]]] = deque()

    def produce(
        self, data: bytes, acks: int, timeout: Micros, done: Callable[[ProduceTicket], None]
    ) -> None:
        """Send one batch; `done` hears of its answer, if one comes."""
        kernel = self.world.kernel
        self._arrives = max(self._arrives, kernel.now + self.world.rng.choice((50, 200, 2 * MS)))
        kernel.at(self._arrives, lambda: self._arrive(data, acks, timeout, done))

    def _arrive(
        self, data: bytes, acks: int, timeout: Micros, done: Callable[[ProduceTicket], None]
    ) -> None:
        life = self._life
        if life is None or not life.alive:
            return

        def handle() -> None:
            deadline = self.world.kernel.now + timeout
            ticket = ProduceTicket(parsed(data), acks, lambda _: self._flush(), deadline)
            self._answers.append((ticket, done))
            life.ticket(ticket)

        life.when_awake(handle)

    def _flush(self) -> None:
        answers = self._answers
        while answers and answers[0][0].done:
            ticket, done = answers.popleft()
            if self.open:
                kernel = self.world.kernel
                span = self.world.rng.choice((50, 200, 2 * MS))
                self._answered = max(self._answered, kernel.now + span)
                kernel.at(self._answered, partial(self._tell, ticket, done))

    def _tell(self, ticket: ProduceTicket, done: Callable[[ProduceTicket], None]) -> None:
        if self.open:
            done(ticket)


class Sent:
    """One batch of a producer until it is acknowledged."""

    def __init__(self, data: bytes, first: int, epoch: int, count: int) -> None:
        self.data = data
        self.first = first
        self.epoch = epoch
        self.count = count
        self.attempts = 0
        self.in_flight = False
        self.base_offset = -1


class Producer:
    """One idempotent producer, acks=all. `careful`: nothing follows its very first batch before
    that is acknowledged."""

    def __init__(
        self, world: World, producer_id: int, *, careful: bool = True, timeout: Micros = 300 * MS
    ) -> None:
        self.world = world
        self.producer_id = producer_id
        self.epoch = 0
        self.careful = careful
        self.timeout = timeout
        self.acked: list[Sent] = []
        self.refused: list[str] = []
        """Answers that no correct broker gives to a correct producer."""
        self._next = 0
        self._unacked: deque[Sent] = deque()
        self._node: NodeId = NODES[producer_id % len(NODES)]
        self._connection: Connection | None = None
        self._retry_at: Micros = 0

    @property
    def idle(self) -> bool:
        """Everything is acknowledged."""
        return not self._unacked

    def produce(self, count: int) -> None:
        """Hand one batch of `count` records to the producer."""
        values = [
            b"%d/%d/%d" % (self.producer_id, self.epoch, self._next + i) for i in range(count)
        ]
        data = build_batch(
            values,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._next,
        )
        self._unacked.append(Sent(data, self._next, self.epoch, count))
        self._next += count
        self._send()

    def bump(self) -> None:
        """A new incarnation; only when nothing is under way."""
        if not self._unacked:
            self.epoch += 1
            self._next = 0

    def _send(self) -> None:
        if self.world.kernel.now < self._retry_at:
            return
        window = 1 if self.careful and not self.acked else 5
        flying = sum(each.in_flight for each in self._unacked)
        for sent in list(self._unacked)[:window]:
            if sent.in_flight:
                flying -= 1
                if sent.attempts > 1:
                    return
            elif flying:
                return  # something behind it is still under way: wait for that first
            else:
                self._launch(sent)
                if sent.attempts > 1:
                    return

    def _launch(self, sent: Sent) -> None:
        if self._connection is None:
            self._connection = Connection(self.world, self._node)
        connection = self._connection
        sent.in_flight = True
        sent.attempts += 1
        attempt = sent.attempts

        def answered(ticket: ProduceTicket) -> None:
            if sent.in_flight and sent.attempts == attempt:
                self._answered(sent, ticket)

        def silent() -> None:
            if sent.in_flight and sent.attempts == attempt:
                self._give_up()

        connection.produce(sent.data, -1, self.timeout, answered)
        self.world.kernel.after(CLIENT_TIMEOUT, silent)

    def _answered(self, sent: Sent, ticket: ProduceTicket) -> None:
        sent.in_flight = False
        error = ticket.error
        if error is ErrorCode.NONE:
            sent.base_offset = ticket.base_offset
            self.acked.append(sent)
            self._unacked.remove(sent)
            self._send()
            return
        head = sent is self._unacked[0]
        if error not in RETRIABLE or (head and error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
            self.refused.append(f"{self.producer_id}/{self.epoch}/{sent.first}: {error.name}")
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._turn_to(ticket.leader)
        self._retry_soon()

    def _turn_to(self, hint: NodeId) -> None:
        others = [node for node in NODES if node != self._node]
        self._node = hint or self.world.rng.choice(others)
        if not any(each.in_flight for each in self._unacked):
            self._connection = None

    def _give_up(self) -> None:
        """Nothing comes any more: close the connection, try elsewhere."""
        if self._connection is not None:
            self._connection.open = False
        self._connection = None
        for sent in self._unacked:
            sent.in_flight = False
        self._node = self.world.rng.choice(NODES)
        self._retry_soon()

    def _retry_soon(self) -> None:
        self._retry_at = self.world.kernel.now + 10 * MS
        self.world.kernel.at(self._retry_at, self._send)
