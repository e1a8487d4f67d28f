"""No false alarms: seeds without mutants, within the fault budget, of which none may fail.

A seed that fails here is a bug of the broker or of the simulator: `ottla sim explain SEED` says
which.
"""

import os

import pytest

from ottla.sim.sweep import sweep
from ottla.sim.sweep_folder import Plan

PLANS = [Plan(0, 2_000), Plan(10_000, 300, "probes = true")]


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS, ids=["plain", "probes"])
def test_no_seed_raises_an_alarm(plan):
    wrong = [
        f"seed {each.seed}: {each.reason}"
        for each in sorted(sweep(plan, os.cpu_count() or 1))
        if each.verdict != "ok"
    ]
    assert not wrong, "\n".join(wrong)
