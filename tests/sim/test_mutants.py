"""Mutants: a safety mechanism that is switched off is missed; outside of `sim/` none can be.

The whole matrix takes minutes (`ottla sim mutants`); here stand those that a few seeds catch, each
with the invariant that has to notice, and the shape of the catalogue.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ottla.raft.config import RaftConfig
from ottla.raft.types import NO_MUTANTS, Mutant
from ottla.sim.mutants.catalogue import BY_ID, CATALOGUE
from ottla.sim.mutants.matrix import kills, settings_of, wilson

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("mutant", "invariant"),
    [
        ("M01", "sim-I02"),
        ("M03", "sim-I25"),
        ("M06", "sim-I09"),
        ("M07", "sim-I24"),
        ("M13", "sim-I10"),
        ("M16", "sim-I36"),
        ("M21", "sim-I02"),
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


@pytest.mark.parametrize("tries", range(1, 60))
def test_an_interval_contains_its_share_and_ends_at_none_and_at_all(tries):
    for hits in range(tries + 1):
        share, low, high = wilson(hits, tries)
        assert (low == 0) if hits == 0 else (0 < low < share)
        assert (high == 1) if hits == tries else (share < high < 1)


def test_the_catalogue_names_every_mutant_once():
    mutants = [row.mutant for row in CATALOGUE]
    assert sorted(each.value for each in mutants) == sorted(each.value for each in Mutant)
    for row in CATALOGUE:
        assert row.mutant.value == row.id
        assert settings_of(row).mutants == row.id


def test_no_mutant_is_named_outside_of_the_simulator():
    """Cores may ask whether one is in the set they were given; nobody else may make a set."""
    for folder in ("broker", "idempotency", "log", "raft", "src/ottla"):
        for path in (ROOT / folder).rglob("*.py"):
            if "sim" in path.relative_to(ROOT).parts:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    made = node.value.id == "Mutant"
                    assert not made or folder == "raft", f"{path}:{node.lineno}"
    assert RaftConfig.__dataclass_fields__["mutants"].default is NO_MUTANTS
    assert frozenset() == NO_MUTANTS
