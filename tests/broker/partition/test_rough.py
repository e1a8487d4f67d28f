"""Whatever clients send, the log is as if the rules had judged one request after the other.

The oracle is the table of rules itself, replayed over the committed log: every batch in it must be
one that the rules accept, given exactly what lies before it (promise-R2 to R4); and every replica's
producers are those of the replay (docs/decisions/0011). `broker_core_rough` says what clients do.
"""

from __future__ import annotations

import pytest

from broker_core_rough import rough_life
from broker_core_world import SECOND


def finish(seed):
    story, clients = rough_life(seed)
    world = story.world
    alive = world.alive()
    world.until(lambda: _equal(alive), 20 * SECOND, "replicas agree")
    world.watch.check_tables(alive)
    clients.check()
    for life in alive:
        assert len(life.machine.table) <= world.options.max_producers
        assert not life.open, f"node {life.node} never answered {list(life.open)}"
    return world.counters.as_dict()


def _equal(lives):
    ends = {(each.machine.applied, each.machine.last_index) for each in lives}
    return len(ends) == 1 and all(applied == last for applied, last in ends)


@pytest.mark.parametrize("seed", range(20))
def test_a_rough_life_leaves_a_serial_log(seed):
    finish(seed)


@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1000, 1150)),
        *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1150, 1800)),
    ],
)
def test_many_rough_lives_leave_serial_logs(seed):
    finish(seed)


@pytest.mark.slow
def test_the_clients_are_as_rough_as_they_claim():
    """Were a kind of answer never given, the tests above would not test it."""
    seen: dict[str, int] = {}
    for seed in range(10):
        for name, count in finish(seed).items():
            seen[name] = seen.get(name, 0) + count
    assert all(seen.values()), f"{seen}"
