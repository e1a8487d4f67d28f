"""Odd requests: requests that no real client sends, to exercise Kafka's order of checks.

In one run of eight an extra client sends a few produce requests. Each of their partitions has one
or more flaws (`Flaw`). Nothing of these requests is stored, and they name no producer that exists,
so they change nothing for the others. Each answer is a `check` row. If it is not Kafka's answer, a
row of node 0 says what Kafka answers (sim-I38).

All choices come from a stream of their own, so other runs do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ottla.broker.profiles.named import profile_named
from ottla.broker.wire.answers import PartitionProduced
from ottla.log.build import build_batch, seal
from ottla.log.record_batch import HEADER
from ottla.raft.types import NodeId
from ottla.sim.clients.worker import MS
from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.world.frames import Frame, produce, produced
from ottla.sim.world.order_of_checks import UNREADABLE, Flaw, Part, answers
from ottla.sim.world.world import SECOND, World

ODD = 2_000_000
"""Its client number."""
ONE_RUN_IN = 8
REQUESTS = 8
"""How many such a run has."""
ACKS = (-1, 1, 7)
OF_A_BATCH = (
    *(Flaw.CRC, Flaw.BASE_OFFSET, Flaw.CODEC, Flaw.COUNT, Flaw.CONTROL, Flaw.NO_SEQUENCE),
    *(Flaw.OLD_MAGIC, Flaw.SEVERAL, Flaw.LENGTH, Flaw.MAGIC, Flaw.TRANSACTIONAL),
)
_ATTRIBUTES = {Flaw.CODEC: 0x07, Flaw.TRANSACTIONAL: 0x10, Flaw.CONTROL: 0x20}
_BYTES = {
    Flaw.LENGTH: (8, (3).to_bytes(4, "big")),
    Flaw.OLD_MAGIC: (16, b"\x01"),
    Flaw.MAGIC: (16, b"\x09"),
    Flaw.BASE_OFFSET: (0, (5).to_bytes(8, "big")),
    Flaw.COUNT: (HEADER.size - 4, (5).to_bytes(4, "big")),
    Flaw.NO_SEQUENCE: (43, (ODD).to_bytes(8, "big")),
}
"""By flaw, the bytes that make it; if two are at the same place, the one that is found first
stays."""
_CRC_AT = 17

Heard = Callable[[Sequence[PartitionProduced]], None]


def flawed(world: World, batches: Sequence[tuple[int, frozenset[Flaw]]], acks: int) -> list[Part]:
    """The partitions of a request with such batches, and all flaws of each. Where one or both of
    two batches for a partition count, it is no flaw to name a partition twice."""
    profile = profile_named(world.config.profile)
    allowed = profile.last_twin_counts or profile.both_twins_count
    numbers = [partition for partition, _ in batches]
    found = []
    for partition, flaws in batches:
        more = {Flaw.ACKS} if acks not in {-1, 0, 1} else set()
        if partition >= world.config.partitions:
            more.add(Flaw.ABSENT)
        elif numbers.count(partition) > 1 and not allowed:
            more.add(Flaw.TWICE)
        found.append(Part(partition, flaws | more))
    return found


def batch_of(flaws: frozenset[Flaw]) -> bytes:
    """A batch of one record with these flaws; flaws of the request do not show in it."""
    attributes = sum(bits for flaw, bits in _ATTRIBUTES.items() if flaw in flaws)
    good = build_batch([b"odd"], attributes=attributes)
    data = bytearray(good)
    for flaw, (place, told) in _BYTES.items():
        if flaw in flaws:
            data[place : place + len(told)] = told
    sealed = bytearray(seal(bytes(data)))
    if Flaw.CRC in flaws:
        sealed[_CRC_AT] ^= 0xFF
    return bytes(sealed) + (build_batch([b"odd"]) if Flaw.SEVERAL in flaws else b"")


def ask(world: World, node: NodeId, parts: Sequence[Part], acks: int, heard: Heard) -> None:
    """Send an odd request to a node. Its answer becomes a row, is judged, and is passed to
    `heard`."""
    batches = [(each.partition, batch_of(each.flaws)) for each in parts]

    def come(answer: Frame) -> None:
        connection.close()
        found = produced(answer.value)
        _note(world, node, parts, found)
        heard(found)

    connection = world.clients.connect(ODD, node, come, lambda _: None)
    connection.send(Frame(1, produce(acks, SECOND, batches)))


def _note(
    world: World, node: NodeId, parts: Sequence[Part], found: Sequence[PartitionProduced]
) -> None:
    profile = profile_named(world.config.profile)
    may_be = answers(parts, profile)
    # Of two batches for a partition, the answer to one that cannot be read comes last.
    places = sorted(range(len(parts)), key=lambda place: bool(parts[place].flaws & UNREADABLE))
    last = {parts[place].partition: may_be[place] for place in places}
    note = partial(world.history.add, "check", client=ODD)
    for place, each in enumerate(found):
        told = may_be[place] if profile.both_twins_count else last[each.partition]
        note(node=node, partition=each.partition, code=each.error.name)
        if each.error not in told:
            note(node=MODEL_NODE, partition=each.partition, code=told[0].name)


class OddRequests:
    """See the module's docstring."""

    def __init__(self, world: World):
        self._world = world
        self._stream = world.choices.stream("odd requests")

    def start(self) -> None:
        """Schedule the requests at random times of the load, if this run has any."""
        world, stream = self._world, self._stream
        if stream.below(ONE_RUN_IN) == 1:
            for _ in range(REQUESTS):
                world.kernel.after(stream.below(world.config.load_ms * MS), self._strike)

    def _strike(self) -> None:
        world, stream = self._world, self._stream
        partitions = world.config.partitions
        first = stream.below(partitions)
        acks = stream.pick(ACKS)
        batches = [(first, self._flaws())]
        if stream.below(2):
            others = (partitions, first, stream.below(partitions))
            batches.append((stream.pick(others), self._flaws()))
        life = world.leader(first)
        if life is not None:
            ask(world, life.node_id, flawed(world, batches, acks), acks, lambda _: None)

    def _flaws(self) -> frozenset[Flaw]:
        stream = self._stream
        found = {stream.pick(OF_A_BATCH)}
        if stream.below(2):
            found.add(stream.pick(OF_A_BATCH))
        if Flaw.OLD_MAGIC in found:
            found.discard(Flaw.TRANSACTIONAL)  # Batches of the old magic cannot be transactional.
        return frozenset(found)
