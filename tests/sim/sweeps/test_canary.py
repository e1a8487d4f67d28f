"""Every sweep carries a canary, and one that nobody notices makes it void."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.raft.state import RaftState
from ottla.sim import run as run_module
from ottla.sim.invariants.findings import Anomaly, Findings, Rows
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.invariant import Place
from ottla.sim.invariants.judge import attach
from ottla.sim.invariants.mutants import CheckerMutant
from ottla.sim.invariants.registry import invariant
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.canary import MUTANTS, Canary, canary
from ottla.sim.sweeps.sweep import VoidSweepError, sweep
from ottla.sim.sweeps.sweep_folder import Plan

PLAN = Plan(0, 2, RunConfig(profile="reference-strict", load_ms=200, records=4).told())


def _see_nothing(_: Rows, *, stop: bool) -> Findings:
    return Findings(stop=stop)


def _say_nothing(_: Index) -> Iterator[Anomaly]:
    return iter(())


def test_the_canary_is_noticed(tmp_path):
    told: list[Canary] = []
    results = list(sweep(PLAN, 1, tmp_path, told.append))
    assert [each.verdict for each in results] == ["ok", "ok"]
    (found,) = told
    assert (found.noticed, found.invariant) == (True, "sim-I09 and sim-I25")
    assert found.reason.startswith("sim-I09 at event ")
    assert "; sim-I25 at event " in found.reason
    assert parquet.read_table(tmp_path / "canary.parquet").to_pylist() == [found._asdict()]


def test_one_is_judged_online_and_one_at_the_end():
    places = [invariant(each).place for each in MUTANTS.values()]
    assert places == [Place.ONLINE, Place.END]


def test_a_broker_that_runs_into_an_error_at_once_is_named_as_the_reason(monkeypatch):
    """A patch with a misspelled name was told that *the checkers see nothing*, and not why."""

    def misspelled(_, message):
        return message.nope

    monkeypatch.setattr(RaftState, "is_up_to_date", misspelled)
    told = str(canary())
    assert "M06, was not noticed, because its run ended with sim-I00 at event " in told
    assert "AttributeError: 'RequestVote' object has no attribute 'nope'" in told
    assert "checkers" not in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "broken", "missed"),
    [
        pytest.param("attach", _see_nothing, "M06", id="nobody looks on the way"),
        pytest.param(
            "attach",
            partial(attach, mutants=frozenset({CheckerMutant.LESS_OR_EQUAL})),
            "M06",
            id="sim-K4",
        ),
        pytest.param("judged_at_the_end", _say_nothing, "M03", id="nobody looks in the end"),
    ],
)
def test_a_sweep_with_broken_checkers_is_void(monkeypatch, tmp_path, name, broken, missed):
    """Also one that had begun when they were still sound."""
    list(sweep(PLAN, 1, tmp_path))
    monkeypatch.setattr(run_module, name, broken)
    with pytest.raises(VoidSweepError, match=f"{missed}, was not noticed"):
        next(sweep(PLAN, 1, tmp_path))
    assert parquet.read_table(tmp_path / "canary.parquet")["noticed"].to_pylist() == [False]
    told = CliRunner().invoke(app, ["sweep", "--seeds", "2", "--out", str(tmp_path / "new")])
    assert told.exit_code == 1
    assert told.stdout.startswith(f"void: the canary, mutant {missed}, was not noticed")
