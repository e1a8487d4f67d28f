"""The workload: which producer is handed which record when; and all clients of a run together.

`config.records` records go to `config.producers` producers, each an even share over `load_ms`. The
plain case is one record at a time at even distances. Choices (stream `workload`) make bursts: a
burst takes several records at the time of its first, and leaves a pause where the others would have
been. The setting `arrivals` may ask for even distances anyway, or for random ones. Each record's
partition is drawn as well, as by a key's hash.

A producer may be replaced in the middle (sim-L1): its application died, or seems to have died, and
starts again with a new producer id. A *zombie* is the old instance that is still alive: it goes on
with the records that it has. A producer in a fatal state is replaced too, as applications do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ottla.broker.errors import ConfigError
from ottla.raft.types import Micros
from ottla.sim.chance.delays import exponential
from ottla.sim.clients.consumer import Consumer
from ottla.sim.clients.librdkafka_nodes import LibrdkafkaConsumer
from ottla.sim.clients.mutants import mutated
from ottla.sim.clients.producer import Producer
from ottla.sim.clients.producer_java import JavaProducer
from ottla.sim.clients.producer_librdkafka import LibrdkafkaProducer
from ottla.sim.clients.worker import MS, surroundings_of
from ottla.sim.plugins.own import OwnProducer, added
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import ENDLESS, World

BURSTS = (1, 1, 2, 3, 5, 8, 13, 20)
"""Sizes of bursts: the large ones fill all that may be in flight."""
MAX_DEATH: Micros = 10 * MS
"""A producer dies at most this long after a burst, while some of it is in flight."""

Model: TypeAlias = type[JavaProducer] | type[LibrdkafkaProducer]

MODELS: dict[str, tuple[Model, ...]] = {
    "java": (JavaProducer,),
    "librdkafka": (LibrdkafkaProducer,),
    "both": (JavaProducer, LibrdkafkaProducer),
}
"""Producer models by the setting `client_model`; producers take them in turn. Those of a plugin are
not here (`models_of`)."""
CONSUMERS: dict[str, tuple[type[Consumer], ...]] = {
    "java": (Consumer,),
    "librdkafka": (LibrdkafkaConsumer,),
    "both": (Consumer, LibrdkafkaConsumer),
}
"""Consumers likewise."""


def make_clients(world: World) -> Clients:
    """The clients that `world.config` asks for; `start` starts them."""
    return Clients(world)


def models_of(config: RunConfig) -> Sequence[type[Producer]]:
    """The classes that the producers of a run take in turn. Raises `ConfigError` for a class of a
    plugin that is none of producers."""
    for each in added(config.plugins, OwnProducer):
        if each.id == config.client_model:
            made = each.function
            if not isinstance(made, type) or not issubclass(made, Producer):
                raise ConfigError(f"client_model: {each.id} is no subclass of Producer")
            return [made]
    return MODELS[config.client_model]


class Clients:
    """See the module's docstring. Numbers: producers from 1, then consumers, then replacements."""

    def __init__(self, world: World):
        config = world.config
        self.world = world
        self.config = config
        self.producers: list[Producer] = []
        """The present producers; a replacement takes the place of the one that it replaces."""
        self.retired: list[Producer] = []
        """Replaced and still alive."""
        self.handed = 0
        """Records handed out so far."""
        self.left = config.records if config.producers else 0
        """Records of the workload that are still to be handed out."""
        self.stream = world.choices.stream("workload")
        self._numbers = 0
        self._replacing = True
        for place in range(config.producers):
            self.producers.append(self._producer(place))
        self.consumers = [self._consumer(place) for place in range(config.consumers)]
        world.client_dies = self.die

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _producer(self, place: int) -> Producer:
        models = models_of(self.config)
        number = self._number()
        model = mutated(models[place % len(models)], self.world.mutants)
        return model(surroundings_of(self.world, number), number, self.config.acks)

    def _consumer(self, place: int) -> Consumer:
        models = CONSUMERS.get(self.config.client_model, CONSUMERS["both"])
        number = self._number()
        model = mutated(models[place % len(models)], self.world.mutants)
        return model(surroundings_of(self.world, number), number, self.world.decoder)

    # ---- a run

    def start(self) -> None:
        """Begin to hand out records, and to read them."""
        for client in (*self.producers, *self.consumers):
            client.start()
        for place in range(len(self.producers)):
            _Share(self, place).begin()

    def probe(self, partition: int) -> int:
        """Hand out one more record for this partition; returns its number."""
        self.hand(partition % len(self.producers), partition)
        return self.handed - 1

    def asker(self, partition: int) -> Producer:
        """The client that gets such a record."""
        return self.producers[partition % len(self.producers)]

    def idle(self) -> bool:
        """Whether all records have been handed out and have their outcome, and none is on its
        way."""
        return not self.left and all(each.at_rest() for each in (*self.producers, *self.retired))

    def stop_faults(self) -> None:
        """Replace no producer any more, unless it is in a fatal state."""
        self._replacing = False

    def behind(self, partitions: Iterable[int]) -> Sequence[tuple[int, Consumer]]:
        """The consumers with each of these partitions that they have not read to the high
        watermark; a partition without a leader counts as such."""
        return [
            (partition, each)
            for each in self.consumers
            for partition in partitions
            if partition in each.partitions
            and each.position(partition) < self.world.high_watermark(partition, ENDLESS)
        ]

    # ---- replacing a producer

    def replace(self, place: int, *, zombie: bool) -> None:
        """A new instance with a new id takes over; the old one dies or lives on."""
        old = self.producers[place]
        new = self.producers[place] = self._producer(place)
        what = "lives on" if zombie else "died"
        self.world.fault(f"client {old.number} {what}, {new.number} takes over", client=old.number)
        if zombie:
            self.retired.append(old)
        else:
            old.crash()
        new.start()

    def die(self, number: int) -> None:
        """The producer of that number dies and is replaced, as long as faults go on."""
        numbers = [each.number for each in self.producers]
        if self._replacing and number in numbers:
            self.replace(numbers.index(number), zombie=False)

    def hand(self, place: int, partition: int) -> None:
        """Hand the next record to a producer."""
        if self.producers[place].failed:
            self.replace(place, zombie=True)
        self.producers[place].hand(self.handed, partition)
        self.handed += 1

    def perhaps_replace(self, place: int) -> None:
        """After a burst: maybe its application dies."""
        if self._replacing and self.stream.chance(self.config.restart_ppm):
            zombie = bool(self.stream.below(2))
            after = self.stream.below(MAX_DEATH)
            self.world.kernel.after(after, self._replace_if, place, zombie)

    def _replace_if(self, place: int, zombie: bool) -> None:
        if self._replacing:
            self.replace(place, zombie=zombie)


class _Share:
    """The records that one producer is handed over the run."""

    def __init__(self, clients: Clients, place: int):
        config: RunConfig = clients.config
        producers = config.producers
        self.clients = clients
        self.place = place
        self.left = config.records // producers + (place < config.records % producers)
        self.distance: Micros = config.load_ms * MS // max(1, self.left)
        self.partitions = config.partitions
        self.bursts = config.arrivals == "bursts"
        self.random = config.arrivals == "random"

    def begin(self) -> None:
        """Schedule the first burst."""
        if self.left:
            offset = self.distance * self.place // self.clients.config.producers
            self.clients.world.kernel.after(offset, self._burst)

    def _burst(self) -> None:
        clients = self.clients
        stream = clients.stream
        size = min(self.left, stream.pick(BURSTS)) if self.bursts else 1
        for _ in range(size):
            clients.hand(self.place, stream.below(self.partitions) if self.partitions > 1 else 0)
        self.left -= size
        clients.left -= size
        clients.perhaps_replace(self.place)
        if self.left:
            distance = exponential(stream, self.distance) if self.random else self.distance
            clients.world.kernel.after(size * distance, self._burst)
