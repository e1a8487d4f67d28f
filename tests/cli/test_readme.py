"""Everything the README says to type is typed here, and every path it names is there.

Commands that take a fixed port get a free one instead, and `make` is asked what it would do: `make
test` is what runs this. The demo's own run is the slow suite's.
"""

import re
import shlex
import subprocess
import sys

import pytest

from cli_process import ottla, running
from tidy.source import repository

ROOT = repository()
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    line for language, text in BLOCKS if language == "sh" for line in text.splitlines() if line
]
SIMULATED = ["run", "sweep", "explain"]
EMBED, FIXTURE, CLIENT = (text for language, text in BLOCKS if language == "python")


def commands(first):
    """Arguments of the README's commands that begin with this word, the word left out."""
    return [shlex.split(line)[1:] for line in COMMANDS if line.split()[0] == first]


def script(text, folder):
    """Run Python text in a process of its own."""
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, path], capture_output=True, check=False, text=True, timeout=60, cwd=folder
    )


def test_every_command_is_of_a_kind_that_is_tried_here():
    assert {line.split()[0] for line in COMMANDS} == {"make", "ottla"}
    kinds = {"up", "demo", "sim", "study", "compare"}
    assert {arguments[0] for arguments in commands("ottla")} == kinds
    assert [arguments[1] for arguments in commands("ottla") if arguments[0] == "sim"] == SIMULATED


@pytest.mark.parametrize("arguments", commands("make"), ids=" ".join)
def test_make_knows_its_targets(arguments):
    command = ["make", "-n", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_embedding_example_runs(tmp_path):
    done = script(EMBED, tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"orders-0 leader [123] ", done.stdout)


@pytest.mark.slow
def test_the_fixture_example_runs(tmp_path):
    path = tmp_path / "test_example.py"
    path.write_text(FIXTURE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path]
    done = subprocess.run(
        command, capture_output=True, check=False, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.slow
def test_up_and_its_client_run(tmp_path):
    (arguments,) = [each[1:] for each in commands("ottla") if each[0] == "up"]
    with running(*arguments, "--port", 0) as up:
        address = up.ready.removeprefix("ready bootstrap=")
        done = script(CLIENT.replace("127.0.0.1:9092", address), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "b'hello'\n"


def simulated(name):
    """The arguments of the simulator's command of that name."""
    (arguments,) = [each for each in commands("ottla") if each[:2] == ["sim", name]]
    return arguments


@pytest.mark.slow
def test_a_simulated_run_ends_with_a_verdict(tmp_path):
    done = ottla(*simulated("run"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("ok: ")


@pytest.mark.slow
def test_the_page_shows_a_failure(tmp_path):
    done = ottla(*simulated("explain"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("failed: sim-I")
    assert b"first bad event" in (tmp_path / "bug.html").read_bytes()


@pytest.mark.nightly
def test_the_sweep_finds_nothing(tmp_path):
    done = ottla(*simulated("sweep"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "100 of 100 seeds, 0 failed" in done.stdout


@pytest.mark.slow(seconds=30)
def test_the_study_says_what_came_of_it(tmp_path):
    ((*arguments, _, out),) = [each for each in commands("ottla") if each[0] == "study"]
    few = ("--seeds", "2")
    done = ottla(*arguments, *few, "--out", tmp_path / out, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "differ in the most seeds" in done.stdout
    assert (tmp_path / out / "report.html").stat().st_size > 50_000


@pytest.mark.slow
def test_two_brokers_are_compared(tmp_path):
    live, profile = [each for each in commands("ottla") if each[0] == "compare"]
    some = ("--cases", "idempotence/*")
    done = ottla(*profile, *some, cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert "redpanda-5157 against kafka-4.3" in done.stdout
    with running("--port", 0, "--nodes", 1, "--profile", "kafka-4.3") as up:
        address = up.ready.removeprefix("ready bootstrap=")
        there = [address if each == "localhost:9092" else each for each in live]
        done = ottla(*there, *some, cwd=tmp_path)
    # The message of an error of transactions, where Kafka has none. Cases that need several nodes,
    # or faults, are left out.
    assert done.returncode == 1, done.stdout
    told = rf"{address} against kafka-4\.3: \d+ cases, 68 alike, 1 differs, [1-9]\d* left out"
    assert re.search(told, done.stdout)


@pytest.mark.slow
def test_the_demo_runs_as_told(tmp_path):
    for arguments in (each for each in commands("ottla") if each[0] == "demo"):
        done = ottla(*arguments, "--records", 3000, "--seconds", 2, "--out", tmp_path)
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_every_option_it_mentions_exists():
    names = (
        ["up"],
        ["demo"],
        ["compare"],
        *(["sim", each] for each in SIMULATED),
        ["study", "run"],
    )
    told = "".join(ottla(*name, "--help").stdout for name in names)
    assert set(re.findall(r"--[a-z][a-z-]+", README)) - set(re.findall(r"--[a-z-]+", told)) == set()


def test_every_folder_and_link_is_there():
    named = re.findall(r"^\| `([^`]+)` \|", README, re.MULTILINE)
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(named) >= 8
    missing = [path for path in [*named, *links] if not (ROOT / path).exists()]
    assert missing == []
