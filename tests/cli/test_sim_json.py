"""What the simulator says to programs: JSON, one object a line, and nothing else on that output."""

import json

import pytest
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.sim.sweeps.bounds import upper_bound

SMALL = ["--set", "load_ms=200", "--set", "records=4"]
FAILING = ["--set", "mutants=M06", "--set", "load_ms=1000", "--set", "records=20"]


def said(*words):
    """Exit status and the objects."""
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("settings", "status"), [(SMALL, 0), (FAILING, 1)], ids=["ok", "failed"])
def test_a_run_is_what_people_are_told(settings, status):
    code, (run,) = said("run", "--seed", 0, *settings)
    told = CliRunner().invoke(app, ["run", "--seed", "0", *settings])
    assert code == told.exit_code == status
    assert f"config {run['config']}\n" in told.stdout
    assert f"digest {run['digest']} after {run['simulated_us'] / 1e6:.3f} s" in told.stdout
    counts = f"{run['steps']} steps, {run['events']} events, {run['choices']} choices"
    assert counts in told.stdout
    assert told.stdout.endswith(f"{run['verdict']}: {run['reason']}\n")
    for name, value in run["settings"].items():
        assert f"\n  {name} = {json.dumps(value)}\n" in told.stdout
    assert [each["invariant"] for each in run["anomalies"]][:1] == (["sim-I09"] if status else [])


def test_a_whole_run_too():
    _, (run,) = said("run", "--seed", 0, "--whole", *SMALL)
    assert run["settings"]["records"] == 4
    assert run["verdict"] == "ok"


@pytest.mark.slow
def test_every_event_of_a_history_is_an_object():
    code, events = said("show", 0, *SMALL)
    _, (run,) = said("run", "--seed", 0, *SMALL)
    assert code == 0
    assert [each["eid"] for each in events] == list(range(run["events"]))
    _, last = said("show", 0, *SMALL, "--kind", "final", "--last", 1)
    assert last == [each for each in events if each["kind"] == "final"][-1:]


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "status"), [(SMALL, 0), (FAILING, 1)], ids=["ok", "failed"])
def test_a_sweep_is_its_canary_its_seeds_and_what_they_come_to(settings, status):
    code, (canary, *seeds, total) = said("sweep", "--seeds", 3, *settings)
    assert code == status
    assert canary["canary"]["noticed"] is True
    assert [each["seed"] for each in seeds] == [0, 1, 2]
    assert total["seeds"] == 3
    for verdict in ("ok", "failed", "weakened"):
        assert total[verdict] == [each["verdict"] for each in seeds].count(verdict)
    assert total["failed_share_at_most"] == upper_bound(total["failed"], 3)
    again = seeds[0]["again"].split()
    assert again[:5] == ["ottla", "sim", "run", "--seed", "0"]
    _, (run,) = said(*again[2:])
    assert (run["digest"], run["verdict"]) == (seeds[0]["digest"], seeds[0]["verdict"])


def test_what_is_wrong_is_said_as_ever():
    done = CliRunner().invoke(app, ["show", "0", "--kind", "no", "--json"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no such kind: no" in str(done.exception)
