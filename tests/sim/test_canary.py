"""Every sweep carries a canary, and one that nobody notices makes it void."""

from __future__ import annotations

from functools import partial

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from ottla.sim import run as run_module
from ottla.sim.canary import Canary
from ottla.sim.invariants.findings import Findings, Rows
from ottla.sim.invariants.judge import attach
from ottla.sim.invariants.mutants import CheckerMutant
from ottla.sim.settings import RunConfig
from ottla.sim.sweep import VoidSweepError, sweep
from ottla.sim.sweep_folder import Plan
from ottla.sim_cli.app import app

PLAN = Plan(0, 2, RunConfig(profile="reference-strict", load_ms=200, records=4).told())


def _see_nothing(_: Rows, *, stop: bool) -> Findings:
    return Findings(stop=stop)


def test_the_canary_is_noticed(tmp_path):
    told: list[Canary] = []
    results = list(sweep(PLAN, 1, tmp_path, told.append))
    assert [each.verdict for each in results] == ["ok", "ok"]
    assert [(each.noticed, each.invariant) for each in told] == [(True, "sim-I09")]
    assert parquet.read_table(tmp_path / "canary.parquet").to_pylist() == [told[0]._asdict()]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(_see_nothing, id="nobody looks"),
        pytest.param(
            partial(attach, mutants=frozenset({CheckerMutant.LESS_OR_EQUAL})), id="sim-K4"
        ),
    ],
)
def test_a_sweep_with_broken_checkers_is_void(monkeypatch, tmp_path, broken):
    """Also one that had begun when they were still sound."""
    list(sweep(PLAN, 1, tmp_path))
    monkeypatch.setattr(run_module, "attach", broken)
    monkeypatch.setattr(run_module, "judged_at_the_end", lambda _: iter(()))
    with pytest.raises(VoidSweepError, match="M06, was not noticed"):
        next(sweep(PLAN, 1, tmp_path))
    assert parquet.read_table(tmp_path / "canary.parquet")["noticed"].to_pylist() == [False]
    told = CliRunner().invoke(app, ["sweep", "--seeds", "2", "--out", str(tmp_path / "new")])
    assert told.exit_code == 1
    assert told.stdout.startswith("void: the canary, mutant M06, was not noticed")
