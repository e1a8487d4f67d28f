"""Situations: each is taken, as a whole or not at all, and what it says makes sense."""

from collections import Counter
from functools import cache

import pytest

from ottla.sim.chance.choices import Drawn
from ottla.sim.nemesis.nemesis import Nemesis, programs_told
from ottla.sim.nemesis.programs import PROGRAMS
from ottla.sim.settings.settings import SETTINGS, RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.settings.situations import SITUATIONS
from ottla.sim.settings.swarm import draw
from ottla.sim.world.world import World

MARKS = ("faults", "fault_kinds", "first_sequence", "profile")
"""Settings that nothing else draws, so they say that a situation was taken."""


def taken(config):
    """The situation that a run is in; None if in none. If two fit, the one that says more."""
    fit = [
        name
        for name, situation in SITUATIONS.items()
        if all(getattr(config, mark) in situation[mark] for mark in MARKS if mark in situation)
    ]
    return max(fit, key=lambda name: len(SITUATIONS[name]), default=None)


@cache
def drawn():
    """What the first seeds draw."""
    return [draw(Drawn(seed), RunConfig()) for seed in range(400)]


def test_half_of_the_seeds_take_one_and_every_one_is_taken():
    found = Counter(map(taken, drawn()))
    assert set(found) == {None, *SITUATIONS}
    assert 160 < found[None] < 240


@pytest.mark.parametrize("name", SITUATIONS)
def test_its_settings_are_what_it_says(name):
    """But for what is made to fit: faults come within the load, and time-outs hold a round trip."""
    fitted = {"fault_every_ms", "request_timeout_ms", "delivery_timeout_ms", "replica_lag_ms"}
    for name_of, values in SITUATIONS[name].items():
        assert name_of in SETTINGS
        assert len(set(values)) == len(values)
    config = next(each for each in drawn() if taken(each) == name)
    for name_of, values in SITUATIONS[name].items():
        if name_of not in fitted:
            assert getattr(config, name_of) in values


@pytest.mark.parametrize("name", SITUATIONS)
def test_it_is_left_out_where_one_of_its_settings_was_told(name):
    seed = next(seed for seed, each in enumerate(drawn()) if taken(each) == name)
    for name_of, values in SITUATIONS[name].items():
        if name_of not in MARKS:
            told = from_toml("", ROOM | {name_of: values[0]})
            assert taken(draw(Drawn(seed), told)) is None


ROOM: dict[str, int | str | bool] = {"profile": "reference", "nodes": 5}
"""With which every setting of a situation may be told alone."""


def test_its_programs_are_within_the_budget():
    known = {each.name for each in PROGRAMS}
    for situation in SITUATIONS.values():
        for faults in situation.get("faults", ()):
            named = programs_told(RunConfig(faults=str(faults)))
            assert {each.name for each in named} <= known
            fewest = min(map(int, situation.get("nodes", (3,))))
            assert all(each.nodes <= fewest for each in named)


@pytest.mark.parametrize("kinds", [1, 2, 8])
def test_so_many_programs_take_part_and_nothing_else_is_drawn(kinds):
    found: set[str] = set()
    for seed in range(20):
        config = RunConfig(fault_kinds=kinds, fault_every_ms=100, load_ms=1_000)
        programs = Nemesis(World(config, Drawn(seed))).programs
        assert len(programs) == kinds
        found |= programs
    assert len(found) > kinds


def test_no_more_programs_than_there_are():
    config = RunConfig(nodes=1, replicas=1, fault_kinds=1_000)
    alone = [each.name for each in PROGRAMS if each.nodes == 1]
    assert Nemesis(World(config, Drawn(0))).programs == frozenset(alone)
