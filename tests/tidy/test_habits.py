"""What a newcomer is told to type is there; the hooks of pre-commit are `make check`, no less.

Of the settings for all tests it is tried what is typed after a failure, which files share a process
and which is begun first.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tidy.source import repository

ROOT = repository()
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TARGETS = dict(re.findall(r"^([a-z-]+):([^=#\n]*)", MAKEFILE, re.MULTILINE))


def recipe(target: str) -> str:
    """The command of a target of one line, as it is run from the checkout."""
    (line,) = re.findall(rf"^{target}:[^\n]*\n\t([^\n]+)$", MAKEFILE, re.MULTILINE)
    return str(line).replace("$(BIN)", ".venv/bin")


def test_the_hooks_are_the_checks():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"^ +entry: (.+)$", hooks, re.MULTILINE)
    checks = [recipe(each).removesuffix(" .") for each in TARGETS["check"].split()]
    assert entries == checks
    assert len(entries) >= 5


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([a-z-]+)", CONTRIBUTING))))
def test_what_is_to_be_made_can_be_made(target):
    assert target in TARGETS


@pytest.fixture
def conftest(request):
    """The module of settings for all tests."""
    (found,) = (
        each
        for each in request.config.pluginmanager.get_plugins()
        if getattr(each, "__file__", None) == str(ROOT / "tests" / "conftest.py")
    )
    return found


def test_a_failed_run_says_how_to_run_its_tests_again(conftest):
    pytest_ = ".venv/bin/python -m pytest -q -m ''"
    assert conftest.again(["a.py::b[c d]"]) == f"{pytest_} 'a.py::b[c d]'"
    assert conftest.again([f"a.py::b[{n}]" for n in range(9)]) == f"{pytest_} a.py"


class Item(NamedTuple):
    """A test, as pytest has it."""

    path: Path
    marked: pytest.Mark | None = None

    def get_closest_marker(self, _):
        return self.marked


def test_the_file_that_takes_longest_is_begun_first_and_stays_together(conftest):
    """A process was left alone with a long one in the end. Files with Spark are one."""
    many, few, long = (ROOT / "tests" / f"{name}.py" for name in ("many", "few", "long"))
    spark = [ROOT / "tests" / "studies" / f"test_{name}.py" for name in ("gold", "silver")]
    slow = [pytest.mark.slow.mark, pytest.mark.slow(seconds=9).mark]
    of = {
        "few": [Item(few)],
        "many": [Item(many, slow[0]), Item(many)],
        "long": [Item(long, slow[1])],
        "spark": [Item(spark[0]), Item(spark[1]), Item(spark[0])],
    }
    assert conftest.longest_first([each for items in of.values() for each in items]) == [
        *of["long"],
        *of["spark"],
        *of["many"],
        *of["few"],
    ]


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("def test_it(tmp_path, spark):\n", True),
        ("def test_it(\n    engine, case\n):\n", True),
        ('@pytest.fixture(scope="module")\ndef made(engine):\n', True),
        ('@pytest.fixture(params=["duck", pytest.param("spark")])\ndef engine(request):\n', True),
        ("def made(engine):\n\n\ndef test_it(duck):\n    made(duck)\n", False),
        ('assert name == "spark"\n', False),
    ],
)
def test_who_asks_for_spark_is_known_by_tests_and_fixtures(conftest, tmp_path, text, asks):
    path = tmp_path / "studies" / "test_it.py"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    assert conftest.asks_for_spark(path) == asks


def test_folders_of_tests_are_there():
    named = re.findall(r"`make (?:test|slow|test slow) T=([a-z/_]+)`", CONTRIBUTING)
    assert len(named) >= 4
    assert [each for each in named if not (ROOT / "tests" / each).is_dir()] == []


def test_each_thing_that_can_be_added_has_a_recipe():
    recipes = re.findall(r"^## Add an? ([a-z]+)", CONTRIBUTING, re.MULTILINE | re.IGNORECASE)
    assert {each.lower() for each in recipes} >= {"api", "fault", "invariant", "mutant", "study"}
