"""`--plugin FILE` behind the commands of `ottla sim`.

What a command of one process prints is asked in this process. Commands that start processes, or
that are carried out by another Python, run in a process of their own, as a user's do. Behind each
test this process has forgotten its plugins.
"""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.commands.usage import UsageError
from sim_plugins import no_plugins, written

TERMS = '''
@invariant("my-first-term")
def first_term(index):
    """Nobody leads a partition in a later term than the first."""
    for row in index.rows["leader"]:
        if row.partition == 0:
            yield row, f"node {row.node} leads term {row.term}"
'''
MUTANT = '''
from ottla.broker.partition.partition import Partition

@mutant("my-lazy", settings={"load_ms": 500, "records": 8}, why="a short run will do")
def lazy(replace):
    """nothing at all"""
    replace(Partition, "apply", Partition.apply)

@fault("my-stall")
def stall(hand):
    """A disk takes its time."""
    hand.world.disks[hand.node()].stall(hand.span())
'''
SMALL = ["--set", "load_ms=200", "--set", "records=4"]
SCENARIO = "> nodes 3\n> producers P=7\n> send P A to 1 seq 0\n> until answered\n> judge\n"


@pytest.fixture(autouse=True)
def _no_plugins():
    with no_plugins():
        yield


@pytest.fixture
def plugin(tmp_path):
    return written(tmp_path, TERMS + MUTANT)


def here(*words):
    """The command, in this process."""
    return CliRunner().invoke(app, [*map(str, words)])


def refused(*words):
    """The line that refuses a command."""
    told = here(*words)
    assert isinstance(told.exception, UsageError), told.output
    return str(told.exception)


def ottla(*words, cwd):
    """The command, in a process of its own."""
    command = [sys.executable, "-m", "ottla", "sim", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=cwd
    )


def test_a_run_is_judged_by_a_plugin_and_the_next_one_is_not(plugin):
    run = ["run", "--seed", 3, *SMALL]
    told = here(*run, "--plugin", plugin)
    assert told.exit_code == 1
    assert re.search(r'\n  plugins = "mine\.py:[0-9a-f]{16}"\n', told.stdout)
    assert "\nfailed: my-first-term at event " in told.stdout
    assert here(*run).exit_code == 0


@pytest.mark.slow
@pytest.mark.usefixtures("plugin")
def test_processes_tapes_pages_and_printed_commands_carry_the_plugin(tmp_path):
    given = [*SMALL, "--plugin", "mine.py"]
    swept = ottla("sweep", "--seeds", 2, "--jobs", 2, "--out", "out", *given, cwd=tmp_path)
    assert swept.returncode == 1, swept.stderr
    assert "\nfailed: 2 of my-first-term\n" in swept.stdout
    again = "  ottla sim run --seed 1 --plugin mine.py --set load_ms=200 --set records=4\n"
    assert again in swept.stdout
    on = ottla("sweep", "--seeds", 2, "--jobs", 2, "--out", "out", *given, cwd=tmp_path)
    assert "2 were there already" in on.stdout
    tape = tmp_path / "out" / "failed" / "1.tape"
    assert "this needs mine.py; name that file with --plugin" in refused("replay", tape)
    small = ottla("shrink", tape, "--seconds", 2, "--plugin", "mine.py", cwd=tmp_path)
    assert "now: ottla sim replay small.tape --plugin mine.py\n" in small.stdout
    shown = ottla("explain", "small.tape", "--plugin", "mine.py", cwd=tmp_path)
    assert shown.stdout.startswith("failed: my-first-term at event ")
    page = (tmp_path / "explain.html").read_text(encoding="utf-8")
    assert "ottla sim explain small.tape --plugin mine.py" in page
    assert "Nobody leads a partition in a later term than the first." in page
    written(tmp_path, TERMS + MUTANT + "\n")
    other = ottla("replay", "small.tape", "--plugin", "mine.py", cwd=tmp_path)
    assert "small.tape: kept with mine.py:" in other.stderr
    assert "the run may be another" in other.stderr
    more = ottla("sweep", "--seeds", 2, "--out", "out", *given, cwd=tmp_path)
    assert "holds another sweep" in more.stderr


@pytest.mark.slow
def test_the_mutants_of_a_plugin_are_swept_and_judged(plugin):
    told = here("mutants", "--plugin", plugin, "--seeds", 2)
    assert told.exit_code == 0, told.output
    assert "my-lazy       2 of 2 failed" in told.stdout
    assert "my-first-term 2; without nothing at all" in told.stdout
    settings = "--set mutants=my-lazy --set load_ms=500 --set records=8"
    assert f"     ottla sim run --seed 0 {settings} --plugin {plugin}\n" in told.stdout


@pytest.mark.slow
def test_a_fault_of_a_plugin_may_be_set(plugin):
    given = ["--set", "faults=my-stall", "--set", "fault_every_ms=50", "--plugin", plugin]
    told = here("show", 3, *SMALL, *given, "--kind", "fault")
    assert "program my-stall" in told.stdout


def test_a_scenario_is_judged_by_a_plugin_and_may_name_its_mutants(plugin, tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(SCENARIO + "> mutant my-lazy -> sim-I01\n", encoding="utf-8")
    told = here("play", path, "--plugin", plugin)
    assert "\n  my-first-term: node 1 leads term 1\n" in told.stdout
    assert "unexpected: my-first-term\n" in told.stdout
    assert "unexpected: my-lazy is not caught by sim-I01\n" in told.stdout


def test_a_scenario_is_drawn_with_a_plugin(plugin, tmp_path):
    path, page = tmp_path / "mine.txt", tmp_path / "mine.html"
    path.write_text(SCENARIO, encoding="utf-8")
    told = here("explain", path, "--mutant", "my-lazy", "--out", page, "--plugin", plugin)
    assert told.exit_code == 0, told.output
    again = f"ottla sim explain {path} --mutant my-lazy --plugin {plugin}"
    assert again in page.read_text(encoding="utf-8")


def test_a_mistake_is_told_in_one_line(plugin, tmp_path):
    seed = ["run", "--seed", 0]
    none = tmp_path / "none.py"
    assert refused(*seed, "--plugin", none) == (
        f"--plugin {none}: No such file or directory; name a plugin"
    )
    assert "Is a directory" in refused(*seed, "--plugin", tmp_path)
    assert "what it names is missing" in refused(*seed, "--plugin")
    bad = written(tmp_path, "x = (\n", "bad.py")
    assert refused(*seed, "--plugin", bad) == f"--plugin {bad}: line 2: '(' was never closed"
    assert "no such fault: my-stalls" in refused(
        *seed, "--set", "faults=my-stalls", "--plugin", plugin
    )
    assert "this needs mine.py" in refused(*seed, "--set", "plugins=mine.py:0")
    for word in (["--blind"], ["--page", tmp_path / "page.md"]):
        assert f"{word[0]} is for what comes with Ottla" in refused(
            "mutants", *word, "--plugin", plugin
        )
    odd = written(tmp_path, MUTANT.replace('"records": 8', '"recordz": 8'), "odd.py")
    assert "the settings of my-lazy: no such setting: recordz" in refused(
        "mutants", "--plugin", odd
    )
