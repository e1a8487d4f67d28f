"""No false alarms: seeds without mutants, within the fault budget, of which none may fail.
Some draw a small producer table or a short expiry: those may store a copy of what was forgotten.

A seed that fails here is a bug of the broker or of the simulator: `ottla sim explain SEED` says
which.
"""

import os

import pytest

from ottla.sim.sweeps.sweep import sweep
from ottla.sim.sweeps.sweep_folder import Plan

_PROMISED_LESS = (
    "stored again, the log had forgotten the producer",
    "acknowledged with acks=1 are lost",
)
"""What weakens a run whose swarm has drawn that (decision 0012)."""


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan(0, 100), marks=pytest.mark.slow(seconds=40)),
        pytest.param(Plan(100, 1_000), marks=pytest.mark.nightly),
    ],
    ids=["100", "1,000"],
)
def test_no_seed_raises_an_alarm(plan):
    wrong = [
        f"seed {each.seed}: {each.reason}"
        for each in sorted(sweep(plan, os.cpu_count() or 1))
        if each.verdict != "ok" and not any(told in each.reason for told in _PROMISED_LESS)
    ]
    assert not wrong, "\n".join(wrong)
