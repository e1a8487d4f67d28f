"""Histories for other checkers: JSON has every row, EDN is what Jepsen writes, and Porcupine reads.

Porcupine is a checker of linearizability in Go that knows nothing of Ottla: it finds sound runs
linearizable, and what some mutants do is not. It is skipped where Go is missing.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.sim.history.export import edn_lines, json_lines, operations
from ottla.sim.history.history import Event
from ottla.sim.run import Verdict, run
from ottla.sim.settings.settings import RunConfig

SMALL = RunConfig(load_ms=1_000, records=20, fault_every_ms=250)
LINE = re.compile(
    r"\{:index (\d+), :time (\d+), :process (\d+), :type :(invoke|ok|fail|info), "
    r":f :(send|poll), :value (\[.+\])(, :error :[A-Z_]+)?\}"
)
VALUE = {
    ("invoke", "send"): r"\[\[:send \d+ \d+\]\]",
    ("ok", "send"): r"\[\[:send \d+ (\[\d+ )?\d+\]?\]\]",
    ("fail", "send"): r"\[\[:send \d+ \d+\]\]",
    ("info", "send"): r"\[\[:send \d+ \d+\]\]",
    ("invoke", "poll"): r"\[\[:poll\]\]",
    ("ok", "poll"): r"\[\[:poll \{\d+ \[(\[\d+ \d+\] ?)+\]\}\]\]",
}
PROGRAM = Path(__file__).parent / "porcupine"


def rows_of(seed, config=SMALL):
    """The rows of a run."""
    return run(seed, config).rows


def test_json_has_every_row():
    rows = rows_of(1)
    assert [json.loads(line) for line in json_lines(rows)] == [row.told() for row in rows]


@pytest.mark.parametrize("seed", range(4))
def test_edn_is_a_vector_of_operations_and_a_process_does_one_thing_at_a_time(seed):
    rows = rows_of(seed, SMALL.with_(delivery_timeout_ms=800, request_timeout_ms=300))
    *lines, end = edn_lines(rows)
    assert end == "]"
    assert lines[0][0] == "["
    found = [LINE.fullmatch(line[1:]) for line in lines]
    assert all(found)
    told = [each.groups() for each in found if each]
    assert [int(each[0]) for each in told] == [*range(len(told))]
    times = [int(each[1]) for each in told]
    assert times == sorted(times)
    busy, dead = {}, set()
    for _, _, process, kind, what, value, error in told:
        assert re.fullmatch(VALUE[kind, what], value), value
        assert bool(error) == (kind in {"fail", "info"})
        if kind == "invoke":
            assert process not in busy
            assert process not in dead
            busy[process] = what
        else:
            assert busy.pop(process) == what
        if kind == "info":
            dead.add(process)


def test_what_clients_heard_is_all_there():
    rows = rows_of(2)
    found = operations(rows)
    for kind, type_ in (("inv", "invoke"), ("ok", "ok"), ("fail", "fail"), ("info", "info")):
        there = sum(each.f == "send" and each.type == type_ for each in found)
        assert there == sum(row.kind == kind and row.op is not None for row in rows)
    given = " ".join(each.value for each in found if each.f == "poll")
    polls = [row for row in rows if row.kind == "poll"]
    assert polls
    assert all(f"[{row.off} {row.value}]" in given for row in polls)


def test_an_offset_that_nobody_knows_is_left_out():
    asked = Event(0, 5, "inv", client=1, op=0, partition=2, value=7)
    known, unknown = (Event(1, 9, "ok", client=1, op=0, partition=2, off=off) for off in (3, -1))
    assert [each.value for each in operations([asked, known])][1] == "[[:send 2 [3 7]]]"
    assert [each.value for each in operations([asked, unknown])][1] == "[[:send 2 7]]"


def test_nothing_is_an_empty_vector():
    assert [*edn_lines([])] == ["[]"]


@pytest.mark.parametrize("shape", ["jsonl", "edn"])
def test_the_command_writes_a_file_or_prints(tmp_path, shape):
    words = ["export", "1", "--to", shape, *(f"--set={line}" for line in SMALL.told().split("\n"))]
    words = [each.replace(" = ", "=") for each in words if each != "--set="]
    printed = CliRunner().invoke(app, words)
    assert printed.exit_code == 0, printed.output
    path = tmp_path / "history"
    written = CliRunner().invoke(app, [*words, "--out", str(path)])
    assert written.exit_code == 0, written.output
    assert path.read_text(encoding="utf-8") == printed.stdout
    lines = json_lines if shape == "jsonl" else edn_lines
    assert printed.stdout.splitlines() == [*lines(rows_of(1))]


@pytest.fixture(scope="module")
def porcupine(tmp_path_factory):
    """What Porcupine says of rows."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    place = tmp_path_factory.mktemp("porcupine") / "it"
    shutil.copytree(PROGRAM, place)
    for step in (("go", "mod", "download"), ("go", "build", "-o", "main", ".")):
        done = subprocess.run(step, cwd=place, capture_output=True, text=True, check=False)
        if done.returncode and "download" in step:
            pytest.skip(f"cannot fetch Porcupine: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr

    def check(rows):
        text = "".join(f"{line}\n" for line in json_lines(rows))
        done = subprocess.run(
            [place / "main"], input=text, capture_output=True, text=True, timeout=300, check=False
        )
        assert not done.stderr
        return done.stdout.strip()

    return check


@pytest.mark.slow
def test_porcupine_finds_sound_runs_linearizable(porcupine):
    """It may run out of time where many records were given up: any order of them is possible. Not
    asked of runs in which clients store records again by their own rules, which no log explains."""
    told = []
    for seed in range(30):
        outcome = run(seed, RunConfig(load_ms=2_000, records=60, fault_every_ms=500))
        if outcome.verdict is Verdict.OK and not outcome.noted:
            told.append(porcupine(outcome.rows))
    assert not [each for each in told if each.endswith("Illegal")]
    assert told.count("linearizable") > 20


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["M32", "M35"])
def test_porcupine_misses_what_a_mutant_lacks(porcupine, mutant):
    """Damage that is kept, and answers that are mixed up."""
    config = RunConfig(mutants=mutant, load_ms=2_000, records=60, fault_every_ms=500)
    assert any(porcupine(rows_of(seed, config)).endswith("Illegal") for seed in range(30))
