"""A seed that a sweep lists is the same run for every command that is given its settings.

So is a tape, which has its own. What a command keeps of a run it keeps in time: a full disk, a
place that cannot be written and an interrupt cost no work of minutes.
"""

import re
import shlex
from errno import ENOSPC

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from ottla.commands.usage import UsageError
from ottla.sim.sweeps import tape_file
from ottla.sim.sweeps.shrink import Shrinker

SHARED = ["--set", "mutants=M06", "--set", "load_ms=1000", "--set", "records=20"]
OTHER = ["--set", "load_ms=200", "--set", "records=4"]
OWN = "a tape has its own settings; leave out --config and --set"


def sim(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def digest_of(told):
    (digest,) = re.findall(r"^digest (\w+) after", told.stdout, re.MULTILINE)
    return digest


@pytest.fixture
def tape(tmp_path):
    path = tmp_path / "0.tape"
    sim("run", "--seed", 0, *SHARED, "--tape", path)
    return path


@pytest.fixture
def config(tmp_path):
    """The first two of `SHARED` stand in a file whose name must be quoted."""
    path = tmp_path / "my settings.toml"
    path.write_text('mutants = "M06"\nload_ms = 1000\n')
    return ["--config", str(path), *SHARED[4:]]


@pytest.mark.slow
def test_a_failing_seed_stands_above_the_command_that_runs_it(tmp_path, config):
    swept = sim("sweep", "--seeds", 2, *config, "--out", tmp_path / "out")
    assert swept.exit_code == 1, swept.output
    lines = swept.stdout.splitlines()
    rows = parquet.ParquetFile(tmp_path / "out" / "part-00000000.parquet").read().to_pylist()
    assert [each["verdict"] for each in rows] == ["failed", "failed"]
    for row in rows:
        told = f"seed {row['seed']} failed: {row['reason']}"
        words = shlex.split(lines[lines.index(told) + 1])
        assert words[:2] == ["ottla", "sim"]
        again = sim(*words[2:])
        assert again.stdout.splitlines()[-1] == f"failed: {row['reason']}"
        replayed = sim("replay", row["seed"], *config)
        assert digest_of(again) == digest_of(replayed) == row["digest"]


@pytest.mark.slow
def test_show_has_the_settings_of_a_seed(tape, config):
    shown = sim("show", 0, *SHARED)
    assert shown.exit_code == 0
    assert shown.stdout == sim("show", tape).stdout == sim("show", 0, *config).stdout
    assert shown.stdout != sim("show", 0, *OTHER).stdout


@pytest.mark.slow
def test_shrink_has_the_settings_of_a_seed(tmp_path):
    out = tmp_path / "small.tape"
    told = sim("shrink", 0, *SHARED, "--out", out, "--seconds", 1)
    assert told.exit_code == 0
    assert "failed: sim-I09" in told.stdout
    assert out.exists()


def test_shrink_notices_a_full_disk_before_it_has_spent_its_time(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(tape_file, "write", full)
    monkeypatch.setattr(Shrinker, "run", lambda _: pytest.fail("shrunk first"))
    out = tmp_path / "small.tape"
    told = CliRunner().invoke(app, ["shrink", "0", *SHARED, "--out", str(out)])
    assert str(told.exception) == f"{out}: No space left on device; name another file"


def test_shrink_that_is_interrupted_keeps_the_smallest_so_far(tmp_path, monkeypatch):
    def interrupted(shrinker):
        smaller = shrinker.best.case.config.with_(records=10)
        shrinker.best = shrinker.best._replace(case=shrinker.best.case._replace(config=smaller))
        raise KeyboardInterrupt

    monkeypatch.setattr(Shrinker, "run", interrupted)
    out = tmp_path / "small.tape"
    told = sim("shrink", 0, *SHARED, "--out", out)
    assert told.exit_code == 130
    assert tape_file.read(out).case.config.records == 10


def test_a_replay_has_as_many_choices_as_its_run(tape):
    (asked,) = re.findall(r"(\d+) choices", sim("run", "--seed", 0, *SHARED).stdout)
    (replayed,) = re.findall(r"(\d+) choices", sim("replay", tape).stdout)
    assert asked == replayed


@pytest.mark.parametrize("text", ["nodes = ", "nods = 3", 'faults = "kil"', "nodes = 0"])
def test_what_is_wrong_in_a_file_names_the_file(tmp_path, text):
    path = tmp_path / "c.toml"
    path.write_text(text)
    told = CliRunner().invoke(app, ["run", "--seed", "1", "--config", str(path)])
    assert isinstance(told.exception, SystemExit | UsageError)
    assert f"--config {path}: " in f"{told.exception}{told.output}"


def test_diff_has_the_settings_of_both_seeds(config):
    assert sim("diff", 0, "0x0", *config).stdout == "the same history\n"
    assert sim("diff", 0, 1, *config).stdout.startswith("event ")


@pytest.mark.slow
def test_diff_has_the_settings_of_the_side_that_is_a_seed(tape):
    for sides in ((tape, 0), (0, tape)):
        same = sim("diff", *sides, *SHARED)
        assert (same.exit_code, same.stdout) == (0, "the same history\n")
        assert sim("diff", *sides, *OTHER).exit_code == 1


@pytest.mark.parametrize("verb", ["replay", "show", "shrink", "diff"])
def test_a_tape_refuses_settings(tape, verb):
    sides = [tape, tape] if verb == "diff" else [tape]
    told = CliRunner().invoke(app, [verb, *map(str, sides), *SHARED], standalone_mode=False)
    assert isinstance(told.exception, UsageError)
    assert str(told.exception) == f"{tape}: {OWN}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["m6", "m06", "M6", "sim-M06", "SIM-m06"])
def test_a_mutant_is_named_as_generously_as_a_scenario(tape, name):
    asked = ["run", "--seed", 0, "--set", f"mutants={name}", *SHARED[2:]]
    assert digest_of(sim(*asked)) == digest_of(sim("replay", tape))
    told = sim("mutants", name, "--seeds", 1)
    assert told.stdout.startswith("M06 "), told.output


def test_mutants_that_there_are_not_are_told_of():
    told = sim("run", "--seed", 0, "--set", "mutants=M06 m99")
    assert str(told.exception).startswith("mutants: there is no M99; one of M01 ")
