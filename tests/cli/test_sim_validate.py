"""`ottla sim validate`: what it prints for runs that follow the specification, and for others."""

import json
import re

import pytest
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.commands.usage import UsageError

SHORT = ["--set", "load_ms=300", "--set", "records=4"]
WRONG = [*SHORT, "--set", "mutants=M07"]


def said(*words):
    """Exit status and output."""
    done = CliRunner().invoke(app, ["validate", *map(str, words)])
    return done.exit_code, done.stdout + done.stderr


def test_a_run_whose_steps_are_allowed_is_one_line():
    code, told = said(2, *SHORT)
    assert code == 0
    assert re.search(r"^1 run, \d+ steps: all are allowed$", told, re.MULTILINE)


def test_a_step_that_is_not_allowed_is_explained():
    code, told = said(4, *WRONG)
    assert code == 1
    lines = told[told.index("4: not allowed") :].splitlines()
    assert re.match(r"  event \d+: send node=\d group=\d append sender=\d to=\d term=", lines[1])
    assert re.match(r"  node \d, .*(group|partition).*: its durable log is not that of", lines[2])
    assert lines[3].startswith("  state before: wrote term ")
    assert lines[4] == (
        "  allowed: on success: that leader sent the entries, and the durable log is the leader's"
        " up to there (figure 2)"
    )
    assert re.match(r"  in the history at event \d+, at \d\.\d{6} s", lines[5])
    assert lines[6].startswith("  the verdict: failed, sim-I")
    words = " ".join(WRONG)
    assert lines[7:9] == [f"  ottla sim validate 4 {words}", f"  ottla sim explain 4 {words}"]
    assert re.match(r"1 run, \d+ steps: 1 with a step that is not allowed", lines[9])


def test_many_seeds_are_counted():
    code, told = said("--first", 2, "--seeds", 2, *SHORT)
    assert code == 0
    assert re.search(r"^2 runs, \d+ steps: all are allowed$", told, re.MULTILINE)
    code, told = said("--first", 4, "--seeds", 2, *WRONG)
    assert code == 1
    assert re.search(r"^2 runs, \d+ steps: 2 with a step that is not", told, re.MULTILINE)
    assert re.findall(r"^(\d): not allowed$", told, re.MULTILINE) == ["4", "5"]


def test_programs_get_an_object_for_each_run_and_the_totals():
    done = CliRunner().invoke(app, ["validate", "--first", "4", "--seeds", "1", *WRONG, "--json"])
    run, total = [json.loads(line) for line in done.stdout.splitlines()]
    assert (run["seed"], run["verdict"], len(run["told"])) == (4, "failed", 5)
    assert run["again"] == f"ottla sim validate 4 {' '.join(WRONG)}"
    assert total == {"runs": 1, "steps": run["steps"], "refused": 1}


def test_a_tape_is_validated_too(tmp_path):
    tape = tmp_path / "run.tape"
    CliRunner().invoke(app, ["run", "--seed", "2", *SHORT, "--tape", str(tape)])
    code, told = said(tape)
    assert code == 0
    assert "all are allowed" in told


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["2", "--seeds", "3"], "2 is one run; leave it out, or --seeds, --first and --jobs"),
        (["x"], "'x' is not a seed; write a number, or 0x and digits; nor is it a file"),
        (["--first", "x"], "'x' is not a seed"),
        (["s12"], "s12 is a scenario; to see it, run ottla sim explain s12"),
        (["2", "--set", "faults=lost-sync"], "no Raft survives all of them"),
        (["--set", "faults=lost-sync"], "no Raft survives all of them"),
        (["--set", "flush=off"], "with flush=off the broker promises nothing"),
    ],
)
def test_mistakes_are_told_in_one_line(words, why):
    done = CliRunner().invoke(app, ["validate", *words])
    assert isinstance(done.exception, UsageError)
    assert why in str(done.exception)
