"""Settings for all tests: how hypothesis searches, which tests share a process, and what a failed
run says. Commands print no progress because a machine is slow, and no colours because the caller
asked for some.

Hypothesis has no deadline, because shared machines stall for longer than any honest limit. In CI
its search is derandomised: a red run must be red again when someone looks.

If tests run in several processes (pytest-xdist, `--dist loadfile`), those of one file stay
together, because they share the fixtures of their module. All files that need Spark go to one
process, because a session takes seconds to open and half a gigabyte to keep. (The marker
`xdist_group` should do that, but has no effect with pytest 9.2, whose test ids are not plain text.)
The longest file is begun first: pytest-xdist alone begins files with few tests last, and in the end
one process was left with the longest of them, the others with nothing.

A failed run ends with the command that runs the failed tests again. Hypothesis remembers the
example that failed, and tries it first; it also prints a line that replays it elsewhere.
"""

import os
import re
import shlex
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from cli_process import UNHURRIED_S
from ottla.commands.sim import telling
from searches import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xdist.scheduler import LoadFileScheduling

settings.register_profile("default", deadline=None, max_examples=examples(), print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

SPARK = "spark"
"""What all files that need Spark have in common."""
FEW_FAILURES = 5
"""So many are named one by one."""
ASKS_FOR_SPARK = re.compile(
    r"(def test_\w+|@pytest\.fixture.*\ndef \w+)\([^)]*\b(engine|spark)\b"
    r"|param(s=\[|\()[^)]*\"spark\""
)
"""Matches a test or fixture that uses a fixture with a session, or a parameter that names Spark;
but no function whose engine is that of the one machine."""


@pytest.fixture(scope="session", autouse=True)
def unhurried() -> "Iterator[None]":
    """Commands print progress only after minutes. For commands in a process: `cli_process`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(telling, "NOW_AND_THEN_S", UNHURRIED_S)
        yield


@pytest.fixture(scope="session", autouse=True)
def nobodys_terminal() -> "Iterator[None]":
    """The caller's terminal changes nothing in a test, or in a command that a test runs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "TERM", "TTY_COMPATIBLE"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def light_jvms(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[None]":
    """Every JVM of Spark uses only its quick compiler. The jobs of tests take seconds, and the
    second compiler would use most of a core for half of that time."""
    folder = tmp_path_factory.mktemp("spark-conf")
    sides = ("driver", "executor")
    lines = (f"spark.{side}.extraJavaOptions -XX:TieredStopAtLevel=1\n" for side in sides)
    (folder / "spark-defaults.conf").write_text("".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(folder))
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What to type next after a failure."""
    stats = terminalreporter.stats
    ids = [each.nodeid for each in (*stats.get("failed", ()), *stats.get("error", ()))]
    if ids:
        terminalreporter.write_line(f"to run them again: {again(ids)}")


def again(ids: "Sequence[str]") -> str:
    """A command that runs these tests, or all tests of their files if there are many."""
    files = list(dict.fromkeys(each.partition("::")[0] for each in ids))
    chosen = ids if len(ids) <= FEW_FAILURES else files
    return shlex.join([".venv/bin/python", "-m", "pytest", "-q", "-m", "", *chosen])


def together(path: Path) -> str:
    """What the tests of a file share a process with: their file, or all that need Spark."""
    return SPARK if asks_for_spark(path) else str(path)


@pytest.hookimpl(trylast=True)  # behind what is left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of pytest-xdist: what takes longest comes first, in the order that it has."""
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items)


def longest_first(items: "Sequence[pytest.Item]") -> list[pytest.Item]:
    """Tests by the seconds of all that share a process, most first. A test takes one second, or
    what its marker says: `slow(seconds=40)`."""
    places = {each.path: together(each.path) for each in items}
    seconds: Counter[str] = Counter()
    for each in items:
        marker = each.get_closest_marker("slow")
        seconds[places[each.path]] += marker.kwargs.get("seconds", 1) if marker else 1
    return sorted(items, key=lambda each: (-seconds[places[each.path]], places[each.path]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> "LoadFileScheduling | None":
    """One process for each file, and one for all files with Spark."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class SparkTogether(LoadFileScheduling):
        """See the module's docstring."""

        def _split_scope(self, nodeid: str) -> str:
            return together(config.rootpath / nodeid.partition("::")[0])

    config.option.loadscopereorder = False  # else files with few tests come last
    return SparkTogether(config, log)


@cache
def asks_for_spark(path: Path) -> bool:
    """Whether a test file needs Spark. Only the studies' tests have such fixtures."""
    if path.parent.name != "studies":
        return False
    return ASKS_FOR_SPARK.search(path.read_text(encoding="utf-8")) is not None
