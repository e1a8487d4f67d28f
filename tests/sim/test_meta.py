"""The meta-test: 1,000 seeds in six processes, on every CPython that is found, have one history.
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

from ottla.sim.meta import Plan, Variant, check, variants
from ottla.sim.settings import RunConfig
from sim_pythons import pythons

SEEDS = 1_000
SETTINGS = RunConfig(profile="reference-strict").with_(load_ms=1_000, records=24).told()
LIBRARIES = ("crc32c", "msgpack", "sortedcontainers")


@pytest.fixture(scope="module")
def others(tmp_path_factory) -> list[str]:
    """The other CPythons, each with the libraries."""
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    rest = [python for minor, python in pythons().items() if minor != mine]
    homes = [tmp_path_factory.mktemp("python") for _ in rest]
    for python, home in zip(rest, homes, strict=True):
        subprocess.run([python, "-m", "venv", str(home)], check=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *LIBRARIES]
        subprocess.run(pip, check=True)
    return [str(home / "bin" / "python") for home in homes]


@pytest.mark.slow
def test_one_seed_is_one_history_everywhere(others):
    plan = Plan(0, SEEDS, SETTINGS)
    ways = variants(others, warm=SEEDS)
    told = dict(check(plan, ways, jobs=os.cpu_count() or 1))
    assert {way.name: told[way] for way in ways} == {way.name: [] for way in ways}


def test_the_libraries_are_those_of_the_project():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f'"{each}>=' in project for each in LIBRARIES)


LEAKS = """\
    #!{python}
    import sys
    from pathlib import Path
    from ottla.sim import meta

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


def test_what_leaks_from_run_to_run_is_named_by_its_first_event(tmp_path):
    """It shows only where the seeds before it are run again: alone, seed 9 is not the third."""
    (told,) = told_of_a_leak(tmp_path, once=False).items()
    assert told[0] == 9
    assert told[1].startswith("event ")
    assert " | " in told[1]


def test_what_happens_once_is_not_called_an_order_of_events(tmp_path):
    told = told_of_a_leak(tmp_path, once=True)
    assert told == {9: "not reproduced: run again, with all before it, both have one history"}
