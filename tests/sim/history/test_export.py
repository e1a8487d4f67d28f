"""Histories for other checkers: JSON has every row, EDN is what Jepsen writes; two checkers read.

Porcupine (Go) and Stateright (Rust) know nothing of Ottla. To both sound runs are linearizable, and
what some mutants do, or what a history was made to say, is not. Each is skipped where its language,
or its packages, are missing.
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
PROGRAMS = Path(__file__).parent


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


def built(place, name, steps, made):
    """What a checker says of rows, once these steps have fetched and built it."""
    if shutil.which(steps[0][0]) is None:
        pytest.skip(f"{steps[0][0]} is not installed")
    shutil.copytree(PROGRAMS / name, place)
    for step in steps:
        done = subprocess.run(step, cwd=place, capture_output=True, text=True, check=False)
        if done.returncode and step is steps[0]:
            pytest.skip(f"cannot fetch {name}: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr

    def check(rows):
        text = "".join(f"{line}\n" for line in json_lines(rows))
        done = subprocess.run(
            [place / made], input=text, capture_output=True, text=True, timeout=300, check=False
        )
        assert not done.stderr
        return done.stdout.strip()

    return check


@pytest.fixture(scope="module")
def porcupine(tmp_path_factory):
    """What Porcupine says of rows."""
    steps = (("go", "mod", "download"), ("go", "build", "-o", "main", "."))
    return built(tmp_path_factory.mktemp("porcupine") / "it", "porcupine", steps, "main")


@pytest.fixture(scope="module")
def stateright(tmp_path_factory):
    """What Stateright says of rows."""
    steps = (("cargo", "fetch", "--locked"), ("cargo", "build", "--offline"))
    made = "target/debug/stateright-check"
    return built(tmp_path_factory.mktemp("stateright") / "it", "stateright", steps, made)


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
    faults = {"M32": "torn-write power blackout", "M35": ""}[mutant]
    config = RunConfig(mutants=mutant, load_ms=2_000, records=60, fault_every_ms=500, faults=faults)
    assert any(porcupine(rows_of(seed, config)).endswith("Illegal") for seed in range(30))


SHORT = RunConfig(load_ms=1_000, records=30, fault_every_ms=500)


@pytest.mark.slow(seconds=30)
def test_stateright_finds_sound_runs_linearizable(stateright):
    """As Porcupine does; it tries one order after the other, so runs are short."""
    told = []
    for seed in range(20):
        outcome = run(seed, SHORT)
        if outcome.verdict is Verdict.OK and not outcome.noted:
            told.append(stateright(outcome.rows))
    assert not [each for each in told if each.endswith("not linearizable")]
    assert told.count("linearizable") > 15


@pytest.mark.slow
def test_stateright_misses_what_a_mutant_lacks(stateright):
    """Answers that are mixed up."""
    mutated = SHORT.with_(mutants="M35")
    told = [stateright(rows_of(seed, mutated)) for seed in range(8)]
    assert any(each.endswith(": not linearizable") for each in told)


def first(rows, kind):
    """The place of the first row of that kind."""
    return next(place for place, row in enumerate(rows) if row.kind == kind)


def lost(rows):
    """Another record lies where the first one was read."""
    place = first(rows, "poll")
    return place, {"value": 999_999}


def moved(rows):
    """The first record was stored at another offset than its client is told."""
    place = first(rows, "ok")
    return place, {"off": rows[place].off + 1}


def early(rows):
    """The first record is read before anybody was handed it."""
    place = first(rows, "inv")
    return place, {"value": 999_998}


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", [lost, moved, early])
@pytest.mark.parametrize("checker", ["porcupine", "stateright"])
def test_a_sound_history_that_is_made_to_say_something_else_is_not_linearizable(
    request, checker, spoilt
):
    check = request.getfixturevalue(checker)
    rows = rows_of(1, SHORT)
    assert check(rows) == "linearizable"
    place, changes = spoilt(rows)
    other = [*rows[:place], rows[place]._replace(**changes), *rows[place + 1 :]]
    assert re.fullmatch(r"partition \d: (Illegal|not linearizable)", check(other))
