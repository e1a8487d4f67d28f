"""What goes wrong in a `broker_core_world.World`, as moves that a test or a generator picks.

`Story` is a world with its clients and one method per move; `finish` ends all faults and checks
everything. `wander` makes a random story from one generator.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from broker_core_clients import Connection, Producer
from broker_core_world import ELECTION, MS, NODES, SECOND, Life, Options, World
from ottla.broker.partition.reads import LATEST_TIMESTAMP
from ottla.broker.turn.tickets import (
    ANY_EPOCH,
    DeleteRecordsTicket,
    EpochEndTicket,
    FetchTicket,
    ListOffsetsTicket,
    Ticket,
    WatchTicket,
)
from ottla.log.build import build_batch
from ottla.raft.types import NodeId

PRODUCERS = (11, 12, 13)


class Story:
    """A world with clients, and everything that may happen to them."""

    def __init__(self, seed: int, options: Options | None = None, *, careful: bool = True) -> None:
        self.world = World(seed, options)
        self.producers = [Producer(self.world, each, careful=careful) for each in PRODUCERS]

    # ---- moves

    def wait(self, span: int) -> None:
        """Let time pass."""
        self.world.kernel.run(span)

    def produce(self, who: int, count: int) -> None:
        """A producer gets something to send."""
        self.producers[who % len(PRODUCERS)].produce(count)

    def bump(self, who: int) -> None:
        """A producer without anything under way starts a new epoch."""
        self.producers[who % len(PRODUCERS)].bump()

    def produce_plain(self, node: NodeId, acks: int) -> None:
        """A plain batch to whatever node."""
        data = build_batch([b"plain"])
        Connection(self.world, node).produce(data, acks, 100 * MS, lambda _: None)

    def read(self, node: NodeId, kind: int) -> None:
        """A read of some kind, or a new log start, at whatever node."""
        life = self.world.lives.get(node)
        if life is not None:
            life.when_awake(lambda: life.ticket(self._reading(life, kind)))

    def _reading(self, life: Life, kind: int) -> Ticket:
        due = self.world.kernel.now + 80 * MS
        high = life.machine.state.high_watermark
        tickets: tuple[Callable[[], Ticket], ...] = (
            lambda: FetchTicket(high, 1000, ANY_EPOCH, _ignore, due),
            lambda: ListOffsetsTicket(LATEST_TIMESTAMP, ANY_EPOCH, _ignore, due),
            lambda: EpochEndTicket(life.machine.leadership.term, ANY_EPOCH, _ignore, due),
            lambda: WatchTicket(high, _ignore, due),
            lambda: DeleteRecordsTicket(self.world.rng.randrange(high + 1), _ignore, due),
        )
        return tickets[kind % len(tickets)]()

    def crash(self, node: NodeId) -> None:
        """Kill a node, if it lives."""
        if node in self.world.lives:
            self.world.crash(node)

    def start(self, node: NodeId) -> None:
        """Start a node, if it is dead."""
        if node not in self.world.lives:
            self.world.start(node)

    def pause(self, node: NodeId) -> None:
        """Stop a node, or let it go on."""
        life = self.world.lives.get(node)
        if life is not None:
            if life.paused:
                life.resume()
            else:
                life.pause()

    def isolate(self, node: NodeId) -> None:
        """Cut a node off from its peers."""
        self.world.isolate(node)

    def cut(self, one: NodeId, other: NodeId) -> None:
        """Cut one direction of one link."""
        self.world.cut.add((one, other))

    def mend(self) -> None:
        """All links work again."""
        self.world.cut.clear()

    def slow(self, node: NodeId) -> None:
        """A disk becomes slow, or fast again."""
        self.world.options.slow ^= {node}

    def transfer(self, to: NodeId) -> None:
        """Whoever leads hands over."""
        for life in self.world.alive():
            if life.machine.leadership.leading and not life.paused:
                life.replica.core.transfer(to, self.world.kernel.now)
                life.mark()

    def step_down(self, node: NodeId) -> None:
        """A node's disk stalls for too long."""
        life = self.world.lives.get(node)
        if life is not None and not life.paused:
            life.step_down()

    def loss(self, percent: int) -> None:
        """Some messages are lost from now on, some come twice."""
        self.world.options.loss = percent / 100
        self.world.options.twice = percent / 200

    # ---- the end

    def finish(self) -> None:
        """Faults end, everything is acknowledged, all replicas agree; then look at everything."""
        world = self.world
        world.heal()
        world.until(lambda: all(each.idle for each in self.producers), 60 * SECOND, "acknowledged")
        world.until(self._at_rest, 20 * SECOND, "replicas agree")
        watch = world.watch
        watch.check_log()
        watch.check_tables(world.alive())
        stored = {batch.base_offset: batch for batch in watch.batches()}
        for producer in self.producers:
            assert not producer.refused, f"{producer.refused}"
            for sent in producer.acked:
                found = stored.get(sent.base_offset)
                assert found is not None, f"acknowledged at {sent.base_offset}, nothing is there"
                assert found.data[21:] == sent.data[21:], f"another batch at {sent.base_offset}"
        world.kernel.run(2 * ELECTION)
        for life in world.alive():
            assert not life.open, f"node {life.node} never answered {list(life.open)}"

    def _at_rest(self) -> bool:
        machines = [each.machine for each in self.world.alive()]
        ends = {(each.applied, each.last_index) for each in machines}
        return len(ends) == 1 and all(applied == last for applied, last in ends)


def _ignore(_: Ticket) -> None:
    """Nobody looks at this answer."""


def wander(story: Story, rng: Random, moves: int) -> None:
    """Random moves; mostly work, now and then a fault."""

    def node() -> NodeId:
        return rng.choice(NODES)

    work: list[Callable[[], None]] = [
        lambda: story.wait(rng.choice((100, MS, 5 * MS, 20 * MS))),
        lambda: story.produce(rng.randrange(3), rng.choice((1, 1, 2, 40))),
        lambda: story.produce(rng.randrange(3), 1),
        lambda: story.produce_plain(node(), rng.choice((-1, 0, 1))),
        lambda: story.read(node(), rng.randrange(5)),
    ]
    faults: list[Callable[[], None]] = [
        lambda: story.wait(rng.choice((50 * MS, 200 * MS, 500 * MS))),
        lambda: story.crash(node()),
        lambda: story.start(node()),
        lambda: story.start(node()),
        lambda: story.pause(node()),
        lambda: story.isolate(node()),
        lambda: story.cut(*rng.sample(NODES, 2)),
        story.mend,
        lambda: story.slow(node()),
        lambda: story.transfer(node()),
        lambda: story.step_down(node()),
        lambda: story.loss(rng.choice((0, 0, 5, 20))),
        lambda: story.bump(rng.randrange(3)),
    ]
    for _ in range(moves):
        rng.choice(faults if rng.random() < 0.15 else work)()
