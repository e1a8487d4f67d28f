"""What a crash leaves on a disk: of a process that was killed, and of a machine without power.

A process loses what it had only staged, and a machine what is in its page cache as well: there lies
what was committed where nothing is flushed, or where the disk lies.
"""

from __future__ import annotations

import pytest

from ottla.log.memory_store import MemoryStore
from ottla.log.store import Write
from ottla.raft.types import Entry, EntryKind, HardState, NodeId
from ottla.sim.chance.choices import Drawn, Replayed, Tape
from ottla.sim.run import Verdict, run
from ottla.sim.scenarios.script import Script
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.disks import SimDisk
from ottla.sim.world.kernel import Kernel
from ottla.sim.world.world import SECOND, World

NODE: NodeId = 1
ALL = Tape({"disk 1": dict.fromkeys(range(9), 1 << 40)})
"""A crash loses all that it may."""


def a_disk(choices=None, **settings):
    """A disk, and its kernel."""
    kernel = Kernel()
    config = RunConfig().with_(**settings)
    return SimDisk(NODE, kernel, choices or Replayed(ALL), config), kernel


def appended(disk, count):
    """A new life that appends so many entries, each by itself; it syncs none of them."""
    store = MemoryStore(disk.medium)
    disk.opened()
    image = disk.medium.images.get(1)
    first = 1 + (0 if image is None else image.last_index)
    for index in range(first, first + count):
        append(store, index)
    return store


def append(store, index):
    """One entry."""
    entry = Entry(index, 1, EntryKind.EMPTY, b"")
    store.append((Write(1, hard_state=HardState(1), first=index, entries=(entry,)),))


def begin_sync(disk, store):
    """As a node does, but that what it wrote is not durable when the sync ends."""
    store.begin_sync()
    disk.sync(lambda: None)


def test_a_kill_takes_what_was_only_staged():
    """It took nothing, ever: acknowledging before the sync was safe, as long as machines ran."""
    seen = set()
    for seed in range(20):
        disk, _ = a_disk(Drawn(seed))
        appended(disk, 3)
        seen.add(disk.crash(power=False))
        assert not disk.medium.images.get(1) or not disk.medium.images[1].damaged
    assert seen == {0, 1, 2, 3}


def test_a_kill_leaves_what_is_synced():
    disk, _ = a_disk()
    store = appended(disk, 3)
    disk.medium.sync(2)
    assert disk.crash(power=False) == 1
    assert disk.medium.images[1].last_index == 2
    assert store.failure is not None


def test_what_a_kill_left_is_on_the_disk():
    """Power that goes afterwards takes none of it, neither before the next life nor in it."""
    disk, _ = a_disk(Replayed(Tape({"disk 1": {1: 1 << 40}})))
    appended(disk, 3)
    assert disk.crash(power=False) == 0
    assert disk.crash(power=True) == 0
    appended(disk, 1)
    assert disk.crash(power=True) == 1
    assert disk.medium.images[1].last_index == 3


def test_where_nothing_is_flushed_the_cache_outlives_the_process_and_not_the_machine():
    disk, _ = a_disk(flush="off")
    store = appended(disk, 2)
    begin_sync(disk, store)
    append(store, 3)
    assert disk.crash(power=False) == 1, "the third is in no transaction yet"
    assert disk.medium.images[1].last_index == 2
    appended(disk, 0)
    assert disk.crash(power=False) == 0
    assert disk.crash(power=True) == 2
    assert 1 not in disk.medium.images


def test_a_disk_that_lies_has_it_in_the_cache_until_the_power_goes():
    """The commit has happened: that the disk does not keep it is nothing to a process."""
    world = World(RunConfig(), Replayed(ALL))
    world.boot()
    world.lie(NODE)
    life = world.lives[NODE]
    before = world.disks[NODE].medium.unsynced_appends
    life.store.append((Write(1, first=world_end(world) + 1, entries=()),))
    job = life.store.begin_sync()
    assert job is not None
    life.store.finish_sync(job)
    assert world.disks[NODE].medium.unsynced_appends == before + 1
    world.crash(NODE)
    assert world.disks[NODE].medium.unsynced_appends == before + 1
    world.crash(NODE, power=True)
    assert world.disks[NODE].medium.unsynced_appends == 0


def world_end(world):
    """Where the first group's log ends on that node."""
    return world.disks[NODE].medium.images[1].last_index


def test_a_machine_whose_process_is_dead_may_still_lose_its_power():
    """Nothing happened, and nobody was told: what was in the cache stood there for good."""
    world = World(RunConfig(flush="off", flush_interval_ms=10), Replayed(ALL))
    world.boot()
    world.kernel.run(world.kernel.now + SECOND)
    world.disks[NODE].hang()
    append(world.lives[NODE].store, world_end(world) + 1)
    world.disks[NODE].sync(lambda: None)
    world.crash(NODE)
    rows = len(world.history.rows)
    left = world.disks[NODE].medium.unsynced_appends
    assert left
    world.crash(NODE, power=True)
    told = [(row.kind, row.node, row.code) for row in world.history.rows[rows:]]
    assert told[0] == ("fault", NODE, "power lost")
    assert told[1:]
    assert set(told[1:]) == {("crash", NODE, "power lost")}
    world.crash(NODE, power=True)
    assert len(world.history.rows) == rows + len(told)
    assert world.start(NODE)


def test_a_disk_with_nothing_unsynced_has_nothing_to_tear():
    """It looked for the newest write among none."""
    script = Script()
    script.play("> nodes 3\n> run 1s\n> tear 1\n> start 1\n> run 1s\n> tear 1 2 3\n")
    assert not [row for row in script.world.history.rows if row.kind == "truncate"]


@pytest.mark.slow
@pytest.mark.parametrize("flush", ["each-turn", "interval"])
def test_nothing_acknowledged_is_lost_by_killing_everybody(flush):
    config = RunConfig(
        faults="kill stop", fault_every_ms=200, load_ms=3_000, records=60, sync_us=20_000
    )
    taken = 0
    for seed in range(6):
        outcome = run(seed, config.with_(flush=flush))
        assert outcome.verdict is not Verdict.FAILED, f"seed {seed}: {outcome.reason}"
        taken += sum(row.aux or 0 for row in outcome.rows if row.kind == "crash")
    assert taken
