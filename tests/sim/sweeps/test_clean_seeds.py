"""No false alarms: seeds without mutants, within the fault budget, of which none may fail.

A seed that fails here is a bug of the broker or of the simulator: `ottla sim explain SEED` says
which.
"""

import os

import pytest

from ottla.sim.sweeps.sweep import sweep
from ottla.sim.sweeps.sweep_folder import Plan


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan(0, 100), marks=pytest.mark.slow),
        pytest.param(Plan(100, 1_000), marks=pytest.mark.nightly),
    ],
    ids=["100", "1,000"],
)
def test_no_seed_raises_an_alarm(plan):
    wrong = [
        f"seed {each.seed}: {each.reason}"
        for each in sorted(sweep(plan, os.cpu_count() or 1))
        if each.verdict != "ok"
    ]
    assert not wrong, "\n".join(wrong)
