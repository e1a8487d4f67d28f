"""What the history says of logs: nothing is left out of it, whatever a turn does at once."""

import pytest

from ottla.broker.commands import DeleteRecordsTicket
from ottla.sim.choices import Replayed, Tape
from ottla.sim.clients.workload import make_clients
from ottla.sim.settings import RunConfig
from ottla.sim.world import SECOND, World


@pytest.mark.parametrize("nodes", [1, 3])
def test_every_entry_has_its_row_though_the_turn_that_applies_it_compacts_behind_it(nodes):
    """The row of the entry that moved the log start was missing: it was gone from the log by the
    time that what had been applied was looked at."""
    config = RunConfig(nodes=nodes, replicas=nodes, load_ms=2_000, records=20)
    world = World(config, Replayed(Tape()))
    world.boot()
    clients = make_clients(world)
    clients.start()
    world.kernel.run(world.kernel.now + SECOND)
    life = world.leader()
    assert life is not None
    done: list[DeleteRecordsTicket] = []
    ticket = DeleteRecordsTicket(-1, done.append, life.clockwork.now() + SECOND)
    life.enter(life.node.submit, world.seats(0)[life.node_id], ticket)
    world.kernel.run(world.kernel.now + 2 * SECOND)
    assert done
    for node in world.nodes:
        rows = [row for row in world.history.rows if (row.node, row.partition) == (node, 0)]
        applied = [row.log_index for row in rows if row.kind == "apply"]
        assert applied == list(range(1, len(applied) + 1))
        assert [row.kind for row in rows].count("snapshot") == 1
