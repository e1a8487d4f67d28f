"""Runs are traced without being changed, and what a mutant does is no step of the specification."""

import pytest

from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.recording.record import NotTheSameError
from ottla.sim.recording.validation import validate, validate_again, validate_seed
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.kills import settings_of

SHORT = "load_ms = 1000\nrecords = 12\n"
CAUGHT = {
    "M04": (10, "no entry of its own term 2 is committed"),
    "M06": (9, "offset 0 is not committed"),
    "M07": (4, "its durable log is not that of term 1"),
    "M09": (6, "the vote of term 2 changes from 1 to 2"),
    "M12": (3, "node 2 leads term 2"),
    "M13": (9, "it gives entry 4, readers may see 3 entries"),
    "M16": (5, "no majority confirmed since the request came that it leads"),
    "M27": (5, "node 2 sent no entry 5 in term 2"),
    "M28": (3, "no leader of term 2 sent entries 54 to 54"),
    "M43": (0, "2 replicas can be in sync, 3 are needed"),
    "M50": (7, "it gives entry 6, readers may see 5 entries"),
    "M51": (7, "it knew all below 16 committed, and 3 replicas are in sync"),
}
"""By mutant, a seed under its own settings, and the reason why its trace is refused."""
ONLY_HERE = {
    "M08": (7, "nobody told it of term 1"),
    "M10": (0, "the log of node 1 is not up to date with (2, 104)"),
    "M11": (0, "it can know 0 entries committed, not 1"),
    "M29": (5, "a majority must grant the pre-vote for term 2"),
    "M32": (7, "the disk held term 1, vote 3, 2 entries"),
    "M33": (7, "it can know 0 entries committed, not 4"),
    "M41": (7, "it shows offsets below 6, it may show those below 4"),
    "M49": (7, "no majority confirmed since the request came that it leads"),
}
"""The same, for seeds in which no invariant notices the mutant."""


@pytest.mark.parametrize("seed", [2, 8])
def test_a_run_that_is_traced_is_the_same_run(seed):
    config = RunConfig(load_ms=1_000, records=12)
    outcome = run(seed, config)
    found = validate_seed(seed, config)
    assert (found.digest, found.verdict) == (outcome.digest, outcome.verdict.value)
    assert (found.refused, found.told) == (None, ())
    assert found.events > 300
    assert validate_again(outcome, seed) == found


def test_a_run_that_differs_when_it_is_traced_is_no_validation():
    outcome = run(0, RunConfig(load_ms=1_000, records=12))
    outcome.digest = "0" * 16
    with pytest.raises(NotTheSameError, match="when traced, 0000"):
        validate_again(outcome, 0)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", CAUGHT)
def test_the_specification_alone_notices_the_mutant(mutant):
    seed, why = CAUGHT[mutant]
    assert why in _told(mutant, seed).told[1]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ONLY_HERE)
def test_the_specification_notices_what_no_invariant_does(mutant):
    seed, why = ONLY_HERE[mutant]
    found = _told(mutant, seed)
    assert found.verdict != "failed"
    assert why in found.told[1]


def _told(mutant, seed):
    return validate_seed(seed, settings_of(BY_ID[mutant]))


@pytest.mark.slow
def test_the_steps_of_short_runs_are_allowed():
    assert [each for each in validate(range(100, 120), SHORT, 1) if each.told] == []


@pytest.mark.nightly
def test_the_steps_of_many_runs_are_allowed():
    """Three minutes on two cores."""
    assert [each for each in validate(range(5_000, 5_500), "", 2) if each.told] == []
