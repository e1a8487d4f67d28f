"""Whole runs of the simulator with its clients, and what must hold of them at their end.

The judge here is small on purpose, and independent of the checkers: it compares the answers to
producers with the logs of the replicas themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.log.records import records_of
from ottla.log.types import RecordBatch
from ottla.raft.types import EntryKind
from ottla.sim.chance.choices import Drawn
from ottla.sim.clients.workload import Clients, make_clients
from ottla.sim.ending.ending import Ending
from ottla.sim.history.history import Event
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.batch import value_of
from ottla.sim.world.world import World

Script = Callable[[World, Clients], None]


class Run(NamedTuple):
    """A run that has come to its end."""

    world: World
    clients: Clients

    def rows(self, *kinds: str) -> list[Event]:
        """The history's rows of these kinds."""
        return [row for row in self.world.history.rows if row.kind in kinds]

    def log(self, partition: int) -> list[int]:
        """The values of a partition's records, by offset, as its leader's store holds them."""
        life = self.world.leader(partition)
        assert life is not None
        replica = self.world.replicas(partition)[life.node_id]
        entries = life.node.read(replica.group, 1, replica.last_index, 1 << 30)
        found: list[int] = []
        for entry in entries:
            if entry.kind is EntryKind.BATCH:
                assert isinstance(entry.payload, RecordBatch)
                assert entry.payload.base_offset == len(found)
                found += [value_of(each.value or b"") for each in records_of(entry.payload)]
        return found


def run(seed: int, config: RunConfig, script: Script | None = None) -> Run:
    """Boot, load, end: `script` may set things going before the load begins."""
    world = World(config, Drawn(seed))
    world.boot()
    clients = make_clients(world)
    clients.start()
    if script is not None:
        script(world, clients)
    world.kernel.run(world.kernel.now + config.load_ms * 1000)
    ending = Ending(world, clients)
    ending.settle()
    ending.finish()
    return Run(world, clients)


def assert_exactly_once(it: Run) -> None:
    """Every acknowledged record is stored once, at its acknowledged offset; other records at most
    once. Each producer's records in each partition are in the order of sending."""
    invoked = {row.op: row for row in it.rows("inv")}
    assert_one_end_each(it)
    logs = {each: it.log(each) for each in range(it.world.config.partitions)}
    counted = Counter(value for log in logs.values() for value in log)
    assert [value for value, count in counted.items() if count > 1] == []
    for row in it.rows("ok"):
        assert row.value in logs[row.partition or 0], f"lost: {row}"
        assert row.off == -1 or logs[row.partition or 0][row.off or 0] == row.value, f"moved: {row}"
    for row in it.rows("fail"):
        assert counted[row.value or 0] == 0, f"failed and stored: {row}"
    for partition, log in logs.items():
        orders: dict[Any, list[int]] = defaultdict(list)
        for value in log:
            assert invoked[value].partition == partition
            orders[invoked[value].client].append(value)
        for client, order in orders.items():
            assert order == sorted(order), f"client {client}, partition {partition}: {order}"


def assert_one_end_each(it: Run) -> None:
    """Every op has one end, and one only."""
    ends = Counter(row.op for row in it.rows("ok", "fail", "info"))
    assert ends == Counter(row.op for row in it.rows("inv"))
    assert len(ends) == it.world.config.records
    assert set(ends.values()) == {1}


def assert_read(it: Run) -> None:
    """Every consumer read every record of every log, once, in order."""
    for consumer in it.clients.consumers:
        for partition in consumer.partitions:
            polls = [
                (row.off, row.value)
                for row in it.rows("poll")
                if (row.client, row.partition) == (consumer.number, partition)
            ]
            assert polls == list(enumerate(it.log(partition)))
