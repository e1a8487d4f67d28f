"""What a sweep says of each seed: failed, weakened, or broken in itself, each with its reason.

Of all of them together it says how many failed, and at which invariant first: seeds of one cause
look alike there.
"""

import json
import shlex

import pytest
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.commands.usage import UsageError
from ottla.sim.run import run
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.sweeps import sweep as sweep_module
from ottla.sim.sweeps.sweep import sweep
from ottla.sim.sweeps.sweep_folder import Plan, SeedResult
from ottla.sim.world import world as world_module

SHORT = "load_ms = 1000\nrecords = 20\n"
BEYOND = 'faults = "lost-sync"\nfault_every_ms = 300\nload_ms = 3000\nrecords = 60\n'


def weakened_seed():
    for seed in range(40):
        outcome = run(seed, from_toml(BEYOND))
        if outcome.verdict.value == "weakened":
            return seed, outcome.reason
    raise AssertionError("no seed is weakened")


def swept(*words):
    return CliRunner().invoke(app, ["sweep", *map(str, words)])


@pytest.mark.slow
def test_a_weakened_seed_keeps_its_reason_and_is_no_failure(tmp_path):
    seed, reason = weakened_seed()
    (result,) = sweep(Plan(seed, 1, BEYOND), 1, tmp_path / "out")
    assert (result.verdict, result.invariant, result.reason) == ("weakened", "", reason)
    assert not list((tmp_path / "out" / "failed").iterdir())
    settings = tmp_path / "beyond.toml"
    settings.write_text(BEYOND)
    told = swept("--first", seed, "--seeds", 1, "--config", settings)
    assert told.exit_code == 0, told.output
    again = shlex.join(["ottla", "sim", "run", "--seed", str(seed), "--config", str(settings)])
    assert f"seed {seed} weakened: {reason}\n  {again}\n" in told.stdout
    assert "1 of 1 seeds, 0 failed, 1 weakened" in told.stdout


@pytest.fixture
def breaks_once(monkeypatch):
    """The simulator itself has a bug, which the second seed of a sweep meets before it begins."""
    make, calls = world_module.World.__init__, []

    def bad(self, *arguments):
        calls.append(self)
        if len(calls) == 4:  # two canaries are run first
            raise ZeroDivisionError("a bug\nof its own")
        make(self, *arguments)

    monkeypatch.setattr(world_module.World, "__init__", bad)


@pytest.mark.slow
@pytest.mark.usefixtures("breaks_once")
def test_a_run_that_breaks_is_a_failed_seed_and_not_the_end_of_the_sweep(tmp_path):
    plan = Plan(7, 4, SHORT)
    results = list(sweep(plan, 1, tmp_path))
    assert [each.verdict for each in results] == ["ok", "failed", "ok", "ok"]
    broken = results[1]
    assert (broken.seed, broken.invariant) == (8, "")
    assert broken.reason.startswith("the run itself broke: ZeroDivisionError: a bug of its own, at")
    assert "test_sweep_rows.py:" in broken.reason
    assert list(sweep(plan, 1, tmp_path)) == results


@pytest.mark.slow
@pytest.mark.usefixtures("breaks_once")
def test_the_command_names_the_seed_that_broke():
    told = swept("--first", 7, "--seeds", 4, "--set", "load_ms=1000", "--set", "records=20")
    assert told.exit_code == 1
    assert "seed 8 failed: the run itself broke: ZeroDivisionError" in told.stdout
    assert "4 of 4 seeds, 1 failed," in told.stdout
    assert told.stdout.splitlines()[-1] == "failed: 1 of the run itself"


def test_a_sweep_ends_with_what_failed_first_and_how_often(monkeypatch):
    """Of a profile that does less than it says, such as Redpanda's, one wants to see at a glance
    whether it is what is published of it."""
    rows = [("failed", "sim-I36"), ("ok", ""), ("failed", "sim-I26"), ("failed", "sim-I36")]
    results = [
        SeedResult(seed, verdict, name, f"{name}, told", "", "", 0, 0, 0, 0)
        for seed, (verdict, name) in enumerate(rows)
    ]
    monkeypatch.setattr(sweep_module, "sweep", lambda *_, **__: iter(results))
    told = swept("--seeds", 4)
    assert told.exit_code == 1
    assert told.stdout.splitlines()[-1] == "failed: 2 of sim-I36, 1 of sim-I26"


def test_answers_that_no_rule_could_judge_are_counted_over_all_seeds(monkeypatch):
    counted = ("3 of sim-I39, 1 of sim-I43", "", "2 of sim-I39")
    results = [SeedResult(0, "ok", "", "", "", "", 0, 0, 0, 0, each) for each in counted]
    monkeypatch.setattr(sweep_module, "sweep", lambda *_, **__: iter(results))
    told = swept("--seeds", 3).stdout.splitlines()
    assert told[-2] == "answers that could not be judged: 5 of sim-I39, 1 of sim-I43"
    said = json.loads(swept("--seeds", 3, "--json").stdout.splitlines()[-1])
    assert said["unjudged"] == {"sim-I39": 5, "sim-I43": 1}


@pytest.mark.slow
def test_a_row_tells_how_many_answers_its_run_could_not_judge():
    results = list(sweep(Plan(7_000, 12), 1))
    assert any(" of sim-I" in each.unjudged for each in results)


def test_what_failed_as_often_stands_by_name_whichever_came_first(monkeypatch):
    rows = ["sim-I36", "sim-I26"]
    results = [
        SeedResult(seed, "failed", name, f"{name}, told", "", "", 0, 0, 0, 0)
        for seed, name in enumerate(rows)
    ]
    for each in (results, results[::-1]):
        monkeypatch.setattr(sweep_module, "sweep", lambda *_, found=each, **__: iter(found))
        assert swept("--seeds", 2).stdout.splitlines()[-1] == "failed: 1 of sim-I26, 1 of sim-I36"


def test_a_folder_with_a_setting_that_is_gone_is_one_line(tmp_path):
    plan = {"first": 0, "seeds": 1, "settings": "no_such_setting = 3", "code": "x"}
    (tmp_path / "sweep.json").write_text(json.dumps(plan))
    told = CliRunner().invoke(app, ["coverage", str(tmp_path)], standalone_mode=False)
    assert isinstance(told.exception, UsageError)
    assert f"{tmp_path}: its settings" in str(told.exception)
    assert "no such setting: no_such_setting" in str(told.exception)
