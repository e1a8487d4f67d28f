"""What the history says of logs: nothing is left out of it, whatever a turn does at once.

What a loss of power takes of a disk's newest writes, it takes from what the history says, too: a
truncation or a snapshot that goes gives back what it had replaced, as rows of its own.
"""

import pytest

from ottla.broker.partition.partition import Partition
from ottla.broker.turn.tickets import DeleteRecordsTicket
from ottla.sim.chance.choices import Replayed, Tape
from ottla.sim.clients.workload import make_clients
from ottla.sim.run import undisturbed
from ottla.sim.scenarios.script import Script
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.frames import TOPIC
from ottla.sim.world.world import SECOND, World


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
    life.enter(life.node.submit, life.node.replica(TOPIC, 0), ticket)
    world.kernel.run(world.kernel.now + 2 * SECOND)
    assert done
    for node in world.nodes:
        rows = [row for row in world.history.rows if (row.node, row.partition) == (node, 0)]
        applied = [row.log_index for row in rows if row.kind == "apply"]
        assert applied == list(range(1, len(applied) + 1))
        assert [row.kind for row in rows].count("snapshot") == 1


def test_what_is_committed_and_not_applied_yet_counts_as_committed():
    """Seed 35 of M17: a leader that had come back committed all it held and refused an old request
    before it applied any of it. The row said that nothing was committed, none came after it, and
    every later answer was too early to sim-I09."""
    world = World(RunConfig(load_ms=1_000, records=20), Replayed(Tape()))
    world.boot()
    make_clients(world).start()
    world.kernel.run(world.kernel.now + 2 * SECOND)
    life = world.leader()
    assert life is not None
    replica = world.replicas(0)[life.node_id]
    machine = life.node.runner.hosted_replicas[replica.group].replica.machine
    assert isinstance(machine, Partition)
    high, machine.state.high_watermark = machine.state.high_watermark, 0
    world.observer.view(life.node_id, replica.group).commit = 0
    world.observer.moved(life, replica.group)
    row = next(row for row in reversed(world.history.rows) if row.kind == "commit")
    assert (row.log_index, row.hw) == (replica.commit, high)
    assert high > 0


def rows_of_node_1(commands):
    """What the history says of the partition there, after this script."""
    script = Script()
    with undisturbed():
        script.play(commands)
    assert script.unexpected == []
    return [row for row in script.world.history.rows if (row.node, row.partition) == (1, 0)]


def test_a_loss_of_power_gives_back_what_was_cut_and_not_synced():
    """M11, seed 4, with figure-8: the truncation went with the entry that had replaced the tail,
    and who asked for the end of the log looked behind the end of what had been seen of it."""
    rows = rows_of_node_1(
        "> nodes 3\n> producers P=7 Q=8\n> isolate 1\n> send P A to 1 seq 0\n"
        "> send P B to 1 seq 1\n> send P C to 1 seq 2\n> until leader 2\n"
        "> send Q D to 2 seq 0\n> until answered Q\n"
        "> at appended 1 term: power 1\n> mend\n> until 1 down\n> run 1s\n"
        "> start 1\n> judge\n"
    )
    place = next(n for n, row in enumerate(rows) if row.kind == "start" and row.inc == 2)
    assert [row.off for row in rows[place + 1 : place + 4] if row.kind == "append"] == [0, 1, 2]


def test_a_loss_of_power_gives_back_what_a_snapshot_had_replaced():
    """The log began where the lost snapshot ended, with its chain, to whoever asked what stood in
    it: sim-I19 blamed the next entries, and sim-I20 believed that what was committed was there."""
    rows = rows_of_node_1(
        "> nodes 3\n> producers P=7 Q=8\n> isolate 1\n> send Q D to 1 seq 0\n"
        "> until leader 2\n> send P A to 2 seq 0\n> send P B to 2 seq 1\n> until answered P\n"
        "> delete-records to 2 below 2\n> run 200ms\n> at appended 1 snapshot: power 1\n"
        "> mend\n> until 1 down\n> run 500ms\n> start 1\n> judge\n"
    )
    (own,) = [row.chain for row in rows if (row.kind, row.inc, row.off) == ("append", 1, 0)]
    place = next(n for n, row in enumerate(rows) if row.kind == "start" and row.inc == 2)
    back = [row for row in rows[place + 1 : place + 4] if row.kind == "append"]
    assert [(row.log_index, row.off) for row in back] == [(1, None), (2, None), (3, 0)]
    durable = next(row for row in rows[place:] if row.kind == "durable")
    assert durable.chain == back[-1].chain == own


def test_a_write_that_cuts_the_log_and_adds_to_it_may_be_torn():
    """Only writes that did nothing but add were ever torn."""
    rows = rows_of_node_1(
        "> nodes 3\n> producers P=7 Q=8\n> isolate 1\n> send Q D to 1 seq 0\n"
        "> until leader 2\n> send P A to 2 seq 0\n> until answered P\n"
        "> at appended 1 term: tear 1\n> mend\n> until 1 down\n> run 500ms\n"
        "> start 1\n> judge\n"
    )
    place = next(n for n, row in enumerate(rows) if row.kind == "crash")
    cut = next(n for n, row in enumerate(rows) if row.kind == "truncate")
    ends = [row.log_index or 0 for row in rows[cut:place] if row.kind == "append"]
    assert ends
    assert max(ends) == (rows[place].log_index or 0) + 1
