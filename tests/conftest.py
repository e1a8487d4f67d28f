"""Settings that hold for every test: how hypothesis searches, which tests share a process, and
that no command says how far it is because the machine is slow, or has colours because its caller
asked for some.

No deadline, because shared machines stall for longer than any honest limit. In CI the search is
derandomised: a red run must be red again when someone looks.

Where tests are spread over processes (pytest-xdist, `--dist loadfile`), those of one file stay
together, for what a module's fixture makes is made once; and all files that ask for Spark go to one
process, for a session takes seconds to open and half a gigabyte to keep. (Its marker `xdist_group`
would say the same, and says nothing with pytest 9.2: ids of tests are no plain text there.)
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from cli_process import UNHURRIED_S
from ottla.commands.sim import telling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.scheduler import LoadFileScheduling

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

ASKS_FOR_SPARK = re.compile(r"def \w+\([^)]*\b(engine|spark)\b|param(s=\[|\()[^)]*\"spark\"")
"""A fixture that opens a session, among those of a test or of another fixture; or a parameter."""


@pytest.fixture(scope="session", autouse=True)
def unhurried() -> "Iterator[None]":
    """Progress that nobody watches is said after minutes; those of a process: `cli_process`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(telling, "NOW_AND_THEN_S", UNHURRIED_S)
        yield


@pytest.fixture(scope="session", autouse=True)
def nobodys_terminal() -> "Iterator[None]":
    """What the caller's terminal is like is no matter of a test, nor of a command that one runs."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "TERM", "TTY_COMPATIBLE"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def light_jvms(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[None]":
    """Every JVM that Spark starts compiles once and quickly: its jobs here are over in seconds, and
    the second compiler would take most of a core for half of them."""
    folder = tmp_path_factory.mktemp("spark-conf")
    sides = ("driver", "executor")
    lines = (f"spark.{side}.extraJavaOptions -XX:TieredStopAtLevel=1\n" for side in sides)
    (folder / "spark-defaults.conf").write_text("".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(folder))
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> "LoadFileScheduling | None":
    """Files to processes, those with Spark to one."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class SparkTogether(LoadFileScheduling):
        """See the module's text."""

        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return "spark" if asks_for_spark(config.rootpath / path) else path

    return SparkTogether(config, log)


def asks_for_spark(path: Path) -> bool:
    """Whether a file of the studies' tests does; others have no such fixtures."""
    if path.parent.name != "studies":
        return False
    return ASKS_FOR_SPARK.search(path.read_text(encoding="utf-8")) is not None
