"""Mutants: a safety mechanism that is switched off is missed; outside of `sim/` none can be.

The whole matrix takes minutes (`ottla sim mutants`); here stand those that a few seeds catch, each
with the invariant that has to notice, and the shape of the catalogue.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.raft.core import RaftCore
from ottla.sim.invariants.judge import attach
from ottla.sim.mutants.catalogue import BY_ID, CATALOGUE
from ottla.sim.mutants.mutant import NO_MUTANTS, Mutant
from ottla.sim.mutants.raft import core_without
from ottla.sim.scenarios.script import choices_of
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.kills import kills, settings_of
from ottla.sim.world.world import World

ROOT = Path(__file__).resolve().parents[3]
FIRST = {"M35": 5}
"""From which seed on: before it, another invariant notices."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "invariant"),
    [
        ("M01", "sim-I02"),
        ("M03", "sim-I25"),
        ("M06", "sim-I09"),
        ("M07", "sim-I24"),
        ("M09", "sim-I52"),
        ("M13", "sim-I10"),
        ("M16", "sim-I52"),
        ("M21", "sim-I02"),
        ("M28", "sim-I22"),
        ("M34", "sim-I14"),
        ("M35", "sim-I09"),
        ("M44", "sim-I44"),
        ("M45", "sim-I45"),
        ("M48", "sim-I48"),
    ],
)
def test_what_is_switched_off_is_missed_at_once(mutant, invariant):
    first = FIRST.get(mutant, 0)
    found = kills(BY_ID[mutant], range(first, first + 20), once=True)
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
    mutants = [row.mutant for row in CATALOGUE if row.mutant]
    assert sorted(each.value for each in mutants) == sorted(each.value for each in Mutant)
    for row in CATALOGUE:
        assert row.mutant is not None
        assert row.mutant.value == row.id
        assert settings_of(row).mutants == row.id


def test_nothing_outside_of_the_simulator_names_a_mutant():
    """Not even in words: what the simulator takes away there is nobody's business below it. (The
    command line reads the catalogue; an import contract keeps everything else from it.)"""
    looked = 0
    for folder in ("broker", "idempotency", "log", "raft"):
        for path in (ROOT / folder).rglob("*.py"):
            looked += 1
            assert "mutant" not in path.read_text(encoding="utf-8").lower(), path
    assert looked > 100


def test_without_mutants_the_core_is_the_brokers_own():
    assert core_without(NO_MUTANTS) is RaftCore
