"""Clients that keep no rules, in a `broker_core_world.World`: `RoughClients`.

They send any sequence of any producer, again and again and several at a time, with any acks and
short timeouts, around the end of the sequences, in old and new epochs and in none. Now and then an
old message between nodes comes once more. Only what holds for every client is promised to them;
`check` says what that is.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from broker_core_clients import Connection
from broker_core_nemesis import Story
from broker_core_world import MS, NODES, SECOND, Options, World
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.tickets import (
    ANY_EPOCH,
    DeleteRecordsTicket,
    FetchTicket,
    ProduceTicket,
    Ticket,
)
from ottla.log.build import build_batch
from ottla.log.record_batch import identity
from ottla.log.types import BatchIdentity, Offset
from ottla.raft.types import NodeId

SEQUENCES = 1 << 31
PRODUCER_IDS = range(5)


class RoughClients:
    """See the module's text. `rng` decides what they do, the world what becomes of it."""

    def __init__(self, world: World, rng: Random) -> None:
        self.world = world
        self.rng = rng
        self.acked: list[tuple[Offset, BatchIdentity | None]] = []
        """What was answered with acks=all: where it lies."""
        self._next = {each: (0, rng.choice((0, SEQUENCES - 4))) for each in PRODUCER_IDS}
        """Epoch and sequence that each producer believes to be next."""

    def produce(self) -> None:
        """One to three copies of a batch, mostly the next one, mostly to the leader."""
        rng, world = self.rng, self.world
        producer_id = rng.choice(PRODUCER_IDS)
        count = rng.choice((1, 1, 2, 3))
        epoch, sequence = self._wanted(producer_id, count)
        data = build_batch(
            [b"%d" % rng.randrange(10**6)] * count,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            base_timestamp=rng.choice((0, -1, -5000, 10**12)),
        )
        leader = world.leader()
        node = leader.node if leader is not None and rng.random() < 0.8 else rng.choice(NODES)
        connection = Connection(world, node)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            timeout = rng.choice((0, MS, 50 * MS, 300 * MS))
            connection.produce(data, rng.choice((-1, -1, 1, 0)), timeout, self._answered)

    def _wanted(self, producer_id: int, count: int) -> tuple[int, int]:
        """Epoch and first sequence of a batch that is right, or wrong in some way."""
        rng = self.rng
        epoch, sequence = self._next[producer_id]
        wrong = rng.random()
        if wrong < 0.05:
            epoch, sequence = epoch + 1, 0
        elif wrong < 0.15:
            return epoch, (sequence - rng.randrange(1, 8)) % SEQUENCES
        elif wrong < 0.2:
            return epoch, (sequence + rng.randrange(1, 4)) % SEQUENCES
        elif wrong < 0.25:
            return max(-1, epoch - rng.randrange(1, 3)), sequence
        self._next[producer_id] = epoch, (sequence + count) % SEQUENCES
        return epoch, sequence

    def _answered(self, ticket: ProduceTicket) -> None:
        who = identity(ticket.batch)
        if ticket.error is ErrorCode.NONE:
            if ticket.acks == -1:
                self.acked.append((ticket.base_offset, who))
        elif who is not None:
            self._next[who.producer_id] = who.epoch, who.first_sequence  # send it again

    def read(self) -> None:
        """Something at the ends of the log, of whatever node."""
        rng, world = self.rng, self.world
        life = world.lives.get(rng.choice(NODES))
        if life is None:
            return
        due, high = world.kernel.now + 80 * MS, life.machine.state.high_watermark
        made: Callable[[], Ticket] = rng.choice(
            (
                lambda: FetchTicket(high + rng.randrange(5), 1000, ANY_EPOCH, _ignore, due),
                lambda: DeleteRecordsTicket(high + rng.randrange(-3, 3), _ignore, due),
                lambda: DeleteRecordsTicket(-1, _ignore, due),
            )
        )
        life.when_awake(lambda: life.ticket(made()))

    def check(self) -> None:
        """What was acknowledged lies where the answer said."""
        stored = {batch.base_offset: identity(batch) for batch in self.world.watch.batches()}
        for offset, who in self.acked:
            assert stored.get(offset) == who, f"{who} at {offset}: there is {stored.get(offset)}"


def _ignore(_: Ticket) -> None:
    """Nobody looks at this answer."""


class Echo:
    """Keeps some of the messages between nodes and sends them once more, much later."""

    def __init__(self, world: World, rng: Random) -> None:
        self._rng = rng
        self._kept: list[tuple[NodeId, NodeId, object]] = []
        self._send = world.send
        world.send = self._remember  # type: ignore[method-assign]

    def _remember(self, sender: NodeId, to: NodeId, message: object) -> None:
        self._send(sender, to, message)
        if self._rng.random() < 0.05:
            self._kept.append((sender, to, message))

    def again(self) -> None:
        """One of them."""
        if self._kept:
            self._send(*self._rng.choice(self._kept))


def rough_life(seed: int) -> tuple[Story, RoughClients]:
    """A whole run, faults ended and replicas at rest; what it leaves is for the caller to check."""
    rng = Random(seed)
    options = Options(
        min_insync=rng.choice((1, 1, 2)),
        leader_queue_bytes=rng.choice((200, 2000, 1 << 20)),
        replica_lag=rng.choice((100 * MS, 2 * SECOND)),
        max_producers=rng.choice((1, 2, 3, 1000)),
        producer_expiry=rng.choice((300 * MS, 2 * SECOND, 86_400 * SECOND)),
        profile=rng.choice(("reference", "reference-strict")),
    )
    story = Story(seed, options)
    world = story.world
    clients, echo = RoughClients(world, rng), Echo(world, rng)

    def node() -> NodeId:
        return rng.choice(NODES)

    work: tuple[Callable[[], None], ...] = (
        lambda: story.wait(rng.choice((100, MS, 5 * MS, 20 * MS, 60 * MS))),
        *[clients.produce] * 3,
        clients.read,
        echo.again,
    )
    faults: tuple[Callable[[], None], ...] = (
        lambda: story.wait(rng.choice((50 * MS, 200 * MS, 500 * MS))),
        lambda: story.crash(node()),
        *[lambda: story.start(node())] * 2,
        lambda: story.pause(node()),
        lambda: story.isolate(node()),
        lambda: story.cut(*rng.sample(NODES, 2)),
        *[story.mend] * 2,
        lambda: story.slow(node()),
        lambda: story.transfer(node()),
        lambda: story.step_down(node()),
        lambda: story.loss(rng.choice((0, 0, 5, 20))),
    )
    rate = rng.choice((0.01, 0.03, 0.06))
    for _ in range(rng.choice((300, 800))):
        rng.choice(faults if rng.random() < rate else work)()
    world.heal()
    world.kernel.run(3 * SECOND)
    return story, clients
