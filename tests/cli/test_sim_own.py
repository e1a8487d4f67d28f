"""Somebody's own: a broken tree, by a patch or a folder, and a scenario in a text file.

Commands with another tree run in a process of their own, because what they print is printed by
another Python.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.commands.usage import UsageError

ROOT = Path(__file__).resolve().parents[2]
PATCH = """\
--- a/raft/quorum.py
+++ b/raft/quorum.py
@@ -22,5 +22,5 @@ def majority(voters: int) -> int:
     \"\"\"How many of `voters` make a majority: any two majorities share a member.\"\"\"
-    return voters // 2 + 1
+    return voters // 2


 def reached(values: Sequence[int]) -> int:
"""
SCENARIO = """\
# A leader is cut off while a batch is under way.
> nodes 3
> producers P=7
> send P A to 1 seq 0
> until answered
> judge
"""
SMALL = ["--set", "load_ms=200", "--set", "records=4"]


def ottla(*words):
    """The command, in a process of its own, as its output is that of another."""
    return subprocess.run(
        [sys.executable, "-m", "ottla", "sim", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def refused(*words):
    """The line that refuses a command."""
    told = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(told.exception, UsageError), told.output
    return str(told.exception)


@pytest.fixture
def patch(tmp_path):
    """A broker whose majorities need not meet."""
    path = tmp_path / "mine.patch"
    path.write_text(PATCH, encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_patched_copy_is_run_and_every_command_that_is_printed_names_it(patch):
    ran = ottla("sweep", "--seeds", 2, "--jobs", 2, "--patch", patch)
    assert ran.returncode == 1, ran.stderr
    assert "2 of 2 seeds, 2 failed" in ran.stdout
    assert f"  ottla sim run --seed 1 --patch {patch}\n" in ran.stdout
    again = ottla(f"--patch={patch}", "run", "--seed", 1)
    assert again.returncode == 1
    assert "\nfailed: sim-I" in again.stdout
    assert "\nok: " in ottla("run", "--seed", 1).stdout


@pytest.mark.slow
def test_a_checkout_is_run_and_its_status_is_the_commands(tmp_path):
    assert ottla("run", "--seed", 1, *SMALL, "--tree", ROOT).returncode == 0
    package = tmp_path / "ottla"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "__main__.py").write_text("raise SystemExit(77)\n", encoding="utf-8")
    assert ottla("run", "--tree", tmp_path).returncode == 77


def test_a_mistake_is_told_in_one_line(patch, tmp_path):
    seed = ["run", "--seed", 0]
    assert "name one of them" in refused(*seed, "--patch", patch, "--tree", ROOT)
    assert "has no src/ottla" in refused(*seed, "--tree", tmp_path)
    assert "what it names is missing" in refused(*seed, "--patch")
    assert "No such file" in refused(*seed, "--patch", tmp_path / "none")
    patch.write_text(PATCH.replace("// 2 + 1", "// 3 + 1"), encoding="utf-8")
    assert "patch does not apply" in refused(*seed, "--patch", patch)


def test_a_scenario_of_ones_own_is_played_kept_and_compared(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(SCENARIO, encoding="utf-8")
    first = CliRunner().invoke(app, ["play", str(path), "--write"])
    assert first.exit_code == 0, first.output
    kept = path.read_text(encoding="utf-8")
    assert first.stdout == kept
    assert "  P hears from 1: A at 0\n" in kept
    assert "  no invariant is broken\n" in kept
    assert CliRunner().invoke(app, ["play", str(path)]).exit_code == 0
    path.write_text(kept.replace("hears from 1: A at 0", "hears from 1: A at 1"), encoding="utf-8")
    other = CliRunner().invoke(app, ["play", str(path)])
    assert other.exit_code == 1
    assert "differs: line 9 of the file says '  P hears from 1: A at 1'" in other.stdout


def test_what_no_line_of_a_scenario_expects_ends_with_status_1(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(SCENARIO + "> mutant M06 -> sim-I01\n", encoding="utf-8")
    told = CliRunner().invoke(app, ["play", str(path)])
    assert told.exit_code == 1
    assert "unexpected: M06 is not caught by sim-I01" in told.stdout


def test_a_scenario_of_ones_own_is_drawn(tmp_path):
    path, page = tmp_path / "mine.txt", tmp_path / "mine.html"
    path.write_text(SCENARIO, encoding="utf-8")
    told = CliRunner().invoke(app, ["explain", str(path), "--out", str(page)])
    assert told.exit_code == 0, told.output
    text = page.read_text(encoding="utf-8")
    assert "A leader is cut off while a batch is under way." in text
    assert f"ottla sim explain {path}" in text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# nothing\n", "has no command"),
        ("> run 2s\n", "line 1: no nodes yet"),
        ("> nodes 3\n\n> fly 3\n", "line 3: > fly 3: no such command: fly"),
        ("> nodes 3\n> until 3 flies\n", "line 2: > until 3 flies: no such condition"),
        ("> nodes 3\n> run\n", "line 2: > run: too few words, or too many"),
        ("> nodes three\n", "line 1: > nodes three: invalid literal"),
        ("> nodes 3\n> send Q A to 1 seq 0\n", "line 2: > send Q A to 1 seq 0"),
    ],
)
def test_a_mistake_in_a_scenario_is_told_by_its_line(tmp_path, text, told):
    path = tmp_path / "mine.txt"
    path.write_text(text, encoding="utf-8")
    for verb in ("play", "explain"):
        assert f"{path}: {told}" in refused(verb, path)
