"""Mutants: a safety mechanism that is switched off is missed; outside of `sim/` none can be.

The whole matrix takes minutes (`ottla sim mutants`); here stand those that a few seeds catch, each
with the invariant that has to notice, and the shape of the catalogue.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.raft.config import RaftConfig
from ottla.raft.mutants import Mutant
from ottla.raft.types import NO_MUTANTS
from ottla.sim.invariants.judge import attach
from ottla.sim.mutants.catalogue import BY_ID, CATALOGUE
from ottla.sim.scenarios.script import choices_of
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.kills import kills, settings_of
from ottla.sim.world.world import World
from sim_mutant_names import misuses

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("mutant", "invariant"),
    [
        ("M01", "sim-I02"),
        ("M03", "sim-I25"),
        ("M06", "sim-I09"),
        ("M07", "sim-I24"),
        ("M09", "sim-I16"),
        ("M13", "sim-I10"),
        ("M16", "sim-I36"),
        ("M21", "sim-I02"),
        ("M28", "sim-I22"),
        ("M34", "sim-I14"),
        ("M35", "sim-I09"),
    ],
)
def test_what_is_switched_off_is_missed_at_once(mutant, invariant):
    found = kills(BY_ID[mutant], range(20), once=True)
    assert found.killed >= 1
    assert invariant in dict(found.invariants)
    assert found.seeds_to_kill is not None
    share, low, high = found.share
    assert low < share <= high


def test_what_is_fresh_was_not_restarted():
    """M33 counted entry 1 of a fresh log as committed, which each run showed in its fifth row."""
    config = RunConfig(mutants="M33")
    world = World(config, choices_of(config))
    online = attach(world.history)
    world.boot()
    assert online.first == {}


def test_the_catalogue_names_every_mutant_once():
    mutants = [row.mutant for row in CATALOGUE]
    assert sorted(each.value for each in mutants) == sorted(each.value for each in Mutant)
    for row in CATALOGUE:
        assert row.mutant.value == row.id
        assert settings_of(row).mutants == row.id


def test_no_mutant_is_switched_on_outside_of_the_simulator():
    """Cores may ask whether one is in the set they were given; nobody else may make a set."""
    looked = 0
    for folder in ("broker", "idempotency", "log", "raft", "src/ottla"):
        for path in (ROOT / folder).rglob("*.py"):
            if "sim" not in path.relative_to(ROOT).parts:
                looked += 1
                assert misuses(path.read_text(encoding="utf-8")) == [], path
    assert looked > 100
    assert RaftConfig.__dataclass_fields__["mutants"].default is NO_MUTANTS
    assert frozenset() == NO_MUTANTS


@pytest.mark.parametrize(
    "source",
    [
        "ReplicaFactory(mutants=frozenset(Mutant))",
        'ReplicaFactory(mutants=frozenset([Mutant("M06")]))',
        'ReplicaFactory(mutants=frozenset({Mutant["VOTES_TWICE"]}))',
        "mutants = {Mutant.VOTES_TWICE}",
        "on = [each for each in Mutant]",
        "on = types.Mutant.VOTES_TWICE",
        "on = ottla.raft.mutants.Mutant",
        'on = getattr(types, "Mutant")',
        "Every = Mutant",
        "from ottla.raft.mutants import Mutant as Every",
        "mutants = Mutants(everything)",
        "every = get_args(Mutants)",
        "on = config.mutants in Mutant.VOTES_TWICE",
        "on = Mutant.VOTES_TWICE == first",
        "on = Mutant(first) in mutants",
    ],
)
def test_what_could_switch_one_on_is_seen(source):
    assert misuses(source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "from ottla.raft.mutants import Mutant",
        "from ottla.raft.types import NO_MUTANTS, Mutants",
        "if Mutant.VOTES_TWICE in mutants: pass",
        "free = free or Mutant.VOTES_TWICE not in state.config.mutants",
        "def f(mutants: Mutants = NO_MUTANTS, which: Mutant | None = None) -> Mutants: ...",
        "class Config:\n    mutants: Mutants = NO_MUTANTS",
        "Mutants: TypeAlias = frozenset[Mutant]",
    ],
)
def test_types_and_questions_are_no_switches(source):
    assert misuses(source) == []
