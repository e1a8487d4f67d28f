"""Settings that hold for every test: how hypothesis searches, and which tests share a process.

No deadline, because shared machines stall for longer than any honest limit. In CI the search is
derandomised: a red run must be red again when someone looks.

Where tests are spread over processes (pytest-xdist, `--dist loadgroup`), those of one file stay
together, for what a module's fixture makes is made once; and all files that ask for Spark go to one
process, for a session takes seconds to open and half a gigabyte to keep.
"""

import os

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

SPARK = {"spark", "engine"}
"""Fixtures that open a session of Spark."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name the group of each test: its file, or Spark's."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    sparked = {item.path for item in items if asks_for_spark(item)}
    for item in items:
        group = "spark" if item.path in sparked else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))


def asks_for_spark(item: pytest.Item) -> bool:
    """Whether it does by the name of a fixture, or by a parameter of one of its own."""
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return bool(SPARK & set(getattr(item, "fixturenames", ()))) or "spark" in values
