"""The meta-test: a seed has one history in six processes, on every CPython that is found.
What is said of those that have not is tried with an interpreter that lets something leak.

Runs are short, so that there can be many; what a seed draws is the same. Other CPythons get the
libraries that the simulator needs in an environment of their own.
"""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from typer.testing import CliRunner

from ottla.commands.sim import telling
from ottla.commands.sim.app import app
from ottla.commands.usage import UsageError
from ottla.sim.machine.pythons import Found, mine, pythons
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.meta import LIBRARIES, Plan, Variant, check, variants

SEEDS, BY_NIGHT = 30, 120
"""In each of six processes, and as many before in one of them."""
SETTINGS = RunConfig(profile="reference-strict").with_(load_ms=1_000, records=24).told()
WHOLE, FIRST_WHOLE = 12, 20_000
"""Seeds of a sweep's own length."""


@pytest.fixture(scope="module")
def others(tmp_path_factory) -> list[str]:
    """The other CPythons, each with the libraries."""
    rest = [each.path for minor, each in pythons().items() if minor != mine()]
    homes = [tmp_path_factory.mktemp("python") for _ in rest]
    for python, home in zip(rest, homes, strict=True):
        subprocess.run([python, "-m", "venv", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *LIBRARIES]
        subprocess.run(pip, check=True)
    return [str(home / "bin" / "python") for home in homes]


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(SEEDS, marks=pytest.mark.slow(seconds=60)),
        pytest.param(BY_NIGHT, marks=pytest.mark.nightly),
    ],
)
def test_one_seed_is_one_history_everywhere(others, seeds):
    plan = Plan(0, seeds, SETTINGS)
    ways = variants(others, warm=seeds)
    told = dict(check(plan, ways, jobs=os.cpu_count() or 1))
    assert {way.name: told[way] for way in ways} == {way.name: [] for way in ways}


@pytest.mark.nightly
def test_so_is_one_that_takes_as_long_as_those_of_a_sweep(others):
    ways = variants(others, warm=0)
    told = dict(check(Plan(FIRST_WHOLE, WHOLE), ways, jobs=os.cpu_count() or 1))
    assert {way.name: told[way] for way in ways} == {way.name: [] for way in ways}


def test_the_libraries_are_those_of_the_project():
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f'"{each}>=' in project for each in LIBRARIES)


LEAKS = """\
    #!{python}
    import sys
    from pathlib import Path
    from ottla.sim.sweeps import meta

    runs, real, gone = [], meta.run, Path({gone!r})

    def run(seed, config):
        runs.append(seed)
        leaks = len(runs) == 3 and not gone.exists()
        if leaks and {once}:
            gone.touch()
        return real(seed + leaks, config)

    meta.run = run
    meta.main(sys.argv[3:])
"""
"""An interpreter that mistakes the third seed of a process for the next one."""


def told_of_a_leak(tmp_path, *, once):
    script = tmp_path / "python"
    about = {"python": sys.executable, "gone": str(tmp_path / "gone"), "once": once}
    script.write_text(dedent(LEAKS).format(**about), encoding="utf-8")
    script.chmod(0o755)
    leaking = Variant("leaking", str(script), "0")
    ways = [*variants([])[:1], leaking]
    (_, none), (_, found) = check(Plan(7, 4, SETTINGS), ways)
    assert none == []
    return {each.seed: each.text for each in found}


@pytest.mark.slow
def test_what_leaks_from_run_to_run_is_named_by_its_first_event(tmp_path):
    """It shows only where the seeds before it are run again: alone, seed 9 is not the third."""
    (told,) = told_of_a_leak(tmp_path, once=False).items()
    assert told[0] == 9
    assert told[1].startswith("event ")
    assert " | " in told[1]


@pytest.mark.slow
def test_what_happens_once_is_not_called_an_order_of_events(tmp_path):
    told = told_of_a_leak(tmp_path, once=True)
    assert told == {9: "not reproduced: run again, with all before it, both have one history"}


OTHER = """\
    #!{python}
    import sys

    sys.version_info = (3, {minor}, 0, "final", 0)
    if sys.argv[1] == "-c":
        if {minor} == 19:
            sys.modules["msgpack"] = None
        exec(sys.argv[2])
    else:
        from ottla.sim.sweeps import meta

        meta.main(sys.argv[3:])
"""


@pytest.fixture
def two(tmp_path, monkeypatch) -> tuple[str, str]:
    """Other CPythons that are found, and no more: one with the libraries, one without."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    paths = [tmp_path / f"python3.{minor}" for minor in (18, 19)]
    for path in paths:
        text = dedent(OTHER).format(python=sys.executable, minor=path.suffix[1:])
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    return str(paths[0]), str(paths[1])


def asked(*more):
    short = ("--set", "load_ms=200", "--set", "records=2", "--set", "fault_every_ms=0")
    few = ("--seeds", "2", "--warm", "0", "--drivers", "0")
    return CliRunner().invoke(app, ["meta", *few, *short, *more])


@pytest.mark.slow
def test_what_goes_on_is_not_said_behind_what_came_of_it(monkeypatch):
    monkeypatch.setattr(telling, "NOW_AND_THEN_S", 0)
    done = asked("--python", sys.executable, "--drivers", "2")
    found = [*(f"{way.name}: 2 seeds, 0 mismatches" for way in variants([sys.executable]))]
    *rest, last = done.stdout.splitlines()
    *rest, bounded = rest
    assert rest == [*found, "both drivers: 2 seeds, 0 mismatches"]
    assert bounded.endswith(" in 100 seeds differ between two runs")
    assert last.startswith("compared: ")
    assert "both drivers: seed 1" in done.stderr.splitlines()


def meta(*more):
    done = asked(*more)
    assert done.exit_code == 0, done.output
    return done.output


def refused(*more):
    done = asked(*more)
    assert isinstance(done.exception, UsageError), done.output
    return str(done.exception)


@pytest.mark.slow
def test_other_cpythons_are_compared_unless_some_are_named(two):
    able, lacking = two
    told = meta()
    assert f"{able}: 2 seeds, 0 mismatches" in told
    assert f"CPython 3.19 is left out, {lacking}: " in told
    assert "msgpack" in told
    assert told.splitlines()[-1] == f"compared: CPython {mine()}, 3.18; not compared: 3.19"
    assert f"{lacking} -m pip install crc32c msgpack sortedcontainers gives it the libr" in told
    named = meta("--python", sys.executable)
    assert f"{sys.executable}: 2 seeds, 0 mismatches" in named
    assert able not in named
    assert lacking not in named


@pytest.mark.slow
def test_the_last_line_says_who_was_compared(two):
    able, lacking = two
    named = meta("--python", able)
    assert named.splitlines()[-1] == f"compared: CPython {mine()}, 3.18"
    Path(able).unlink()
    Path(lacking).unlink()
    assert meta().splitlines()[-1] == f"compared: CPython {mine()} with itself; no other was found"


@pytest.mark.slow
def test_a_cpython_that_is_required_takes_part_or_nothing_is_compared(two):
    able, lacking = two
    here = ("--require-python", mine(), "--require-python", "3.18")
    assert "not compared: 3.19" in meta(*here)
    assert "compared: CPython" in meta(*here, "--python", able)
    told = refused(*here, "--require-python", "3.19")
    assert f"CPython 3.19 cannot take part, {lacking}: " in told
    assert f"{lacking} -m pip install" in told
    assert "CPython 3.17 does not take part" in refused("--require-python", "3.17")
    assert "write a version such as 3." in refused("--require-python", "3.12.1")
    named = refused("--python", sys.executable, "--require-python", "3.18")
    assert "CPython 3.18 does not take part; --python names the path of one" in named


def test_an_interpreter_that_can_is_taken_before_one_that_cannot(two, tmp_path):
    able, lacking = two
    other = tmp_path / "versions" / "3.19.0" / "bin" / "python"
    other.parent.mkdir(parents=True)
    text = Path(able).read_text(encoding="utf-8").replace("(3, 18,", "(3, 19,")
    other.write_text(text, encoding="utf-8")
    other.chmod(0o755)
    assert pythons("import msgpack") == {
        mine(): Found(sys.executable, ""),
        "3.18": Found(able, ""),
        "3.19": Found(str(other), ""),
    }
    assert pythons()["3.19"] == Found(lacking, "")
