"""Beyond the fault budget: what a disk forgot is told as the reason of a loss, and of nothing else.

Seeds draw none of it. Where the settings name it a run is *weakened* by what the history traces
back to it; a loss that it does not explain fails the run as ever (sim-S35 plays both by hand).
"""

from __future__ import annotations

import pytest

from ottla.sim.nemesis.beyond import BEYOND
from ottla.sim.nemesis.programs import PROGRAMS
from ottla.sim.run import Verdict, run
from ottla.sim.settings import RunConfig

SHORT = RunConfig(
    profile="reference-strict",
    load_ms=4_000,
    records=120,
    fault_every_ms=150,
    client_model="java",  # librdkafka's may store copies by its own doing (librdkafka 4953)
)


def test_no_seed_draws_a_fault_that_no_raft_stands():
    assert not {each.name for each in BEYOND} & {each.name for each in PROGRAMS}
    for seed in range(8):
        outcome = run(seed, SHORT)
        assert outcome.verdict is Verdict.OK, outcome.reason
        assert not any(row.kind == "beyond" for row in outcome.rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        ("lost-sync isolate kill", "forgot it (a sync that kept nothing)"),
        ("old-copy isolate kill", "sim-I22"),
        ("same-id kill", "is two producers'"),
    ],
)
def test_what_it_took_is_explained(faults, reason):
    outcomes = [run(seed, SHORT.with_(faults=faults, restart_ppm=50_000)) for seed in range(20)]
    assert [each.reason for each in outcomes if each.verdict is Verdict.FAILED] == []
    weakened = [each for each in outcomes if each.verdict is Verdict.WEAKENED]
    assert any(reason in told for each in weakened for told in each.weakened)
    for each in weakened:
        assert any(row.kind == "beyond" for row in each.rows)


@pytest.mark.slow
def test_what_it_did_not_take_is_a_failure():
    config = SHORT.with_(faults="lost-sync isolate kill", mutants="M06")
    outcomes = [run(seed, config) for seed in range(10)]
    failed = [each for each in outcomes if each.verdict is Verdict.FAILED]
    assert any(any(row.kind == "beyond" for row in each.rows) for each in failed)
    assert {"sim-I09"} <= {found.invariant for each in failed for found in each.anomalies}
