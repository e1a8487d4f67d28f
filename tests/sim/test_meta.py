"""The meta-test: 1,000 seeds in six processes, on every CPython that is found, have one history.

Runs are short, so that there can be many; what a seed draws is the same. Other CPythons get the
libraries that the simulator needs in an environment of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.sim.meta import Plan, check, variants
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
