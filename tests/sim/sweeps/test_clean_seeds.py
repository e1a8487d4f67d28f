"""No false alarms: seeds without mutants, within the fault budget, of which none may fail.

A seed that fails here is a bug of the broker or of the simulator: `ottla sim explain SEED` says
which.
"""

import os

import pytest

from ottla.sim.sweeps.sweep import sweep
from ottla.sim.sweeps.sweep_folder import Plan

PLAN = Plan(0, 240)


@pytest.mark.slow
def test_no_seed_raises_an_alarm():
    wrong = [
        f"seed {each.seed}: {each.reason}"
        for each in sorted(sweep(PLAN, os.cpu_count() or 1))
        if each.verdict != "ok"
    ]
    assert not wrong, "\n".join(wrong)
