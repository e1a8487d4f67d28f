"""Every run is checked step by step, and what a mutant does is no step of the specification."""

import re

import pytest

from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.recording.validation import validate, validate_seed, validated
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.kills import settings_of

SHORT = RunConfig(load_ms=1_000, records=12)
CAUGHT = {
    "M06": (9, "offset .* is not committed"),
    "M07": (4, "its durable log is not that of term"),
    "M09": (6, "the vote of term .* changes from"),
    "M13": (9, "it gives entry .*, readers may see"),
    "M16": (5, "no majority confirmed since the request came that it leads"),
    "M27": (5, "sent no entry|its durable"),
    "M28": (3, "no leader of term .* sent entries"),
    "M43": (0, "replicas can be in sync, .* are needed"),
    "M50": (7, "it gives entry .*, readers may see"),
    "M51": (7, "it knew all below .* committed, and .* replicas are in sync"),
}
"""By mutant, a seed under its own settings that shows it as draws are now, and a part of the reason
why its trace is refused."""
ONLY_HERE = {
    "M08": (7, "nobody told it of term"),
    "M10": (0, "is not up to date with"),
    "M11": (0, "it can know .* entries committed, not"),
    "M29": (5, "a majority must grant the pre-vote"),
    "M32": (7, "it cannot hold"),
    "M33": (7, "it can know .* entries committed, not"),
    "M41": (7, "it shows offsets below .*, it may show those below"),
    "M49": (6, "no majority confirmed since the request came that it leads"),
}
"""The same, where no invariant notices the mutant in that seed."""
SEEDS = 12
"""So many are tried if the draws have changed."""


def test_each_run_is_checked_step_by_step():
    outcome = run(2, SHORT)
    found = validated(outcome, 2)
    assert (found.digest, found.verdict) == (outcome.digest, outcome.verdict.value)
    assert found.told == ()
    assert found.steps > 300
    assert validate_seed(2, SHORT) == found


def test_beyond_the_fault_budget_nothing_is_checked():
    outcome = run(2, SHORT.with_(faults="lost-sync"))
    assert (outcome.checked, outcome.forbidden) == (0, ())


@pytest.mark.slow
@pytest.mark.parametrize("mutant", CAUGHT)
def test_the_specification_alone_notices_the_mutant(mutant):
    seed, why = CAUGHT[mutant]
    assert any(re.search(why, found.told[1]) for found in _refused(mutant, seed))


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ONLY_HERE)
def test_the_specification_notices_what_no_invariant_does(mutant):
    seed, why = ONLY_HERE[mutant]
    alone = (found for found in _refused(mutant, seed) if _alone(found))
    assert any(re.search(why, found.told[1]) for found in alone)


def _refused(mutant, first):
    """Runs without the mechanism that have a step which is not allowed, beginning with a seed."""
    for seed in (first, *range(SEEDS)):
        found = validate_seed(seed, settings_of(BY_ID[mutant]))
        if found.told:
            yield found


def _alone(found):
    """Whether no other invariant noticed anything."""
    return found.reason.startswith("sim-I52") and " more)" not in found.reason


@pytest.mark.slow
def test_the_steps_of_short_runs_are_allowed():
    assert [each for each in validate(range(100, 112), SHORT.told(), 1) if each.told] == []


@pytest.mark.nightly
def test_the_steps_of_many_runs_are_allowed():
    """Three minutes on two cores."""
    assert [each for each in validate(range(5_000, 5_500), "", 2) if each.told] == []
