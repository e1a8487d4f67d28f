"""Plugins for tests: files that are written, loaded, and forgotten behind the test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.sim.plugins.files import choose, setting
from ottla.sim.plugins.own import LOADED
from ottla.sim.settings.settings import RunConfig

HEAD = "from ottla.sim.plugins.own import client, fault, invariant, mutant\n"
SHORT = RunConfig(load_ms=600, records=12, nodes=3, fault_every_ms=100)


@contextmanager
def no_plugins() -> Iterator[None]:
    """Behind it, this process has the plugins that it had before, and has chosen none."""
    before = dict(LOADED)
    try:
        yield
    finally:
        LOADED.clear()
        LOADED.update(before)
        choose([])


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    """A plugin of this text, behind the imports that each has; its first line is line 2."""
    path = folder / name
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def with_plugin(folder: Path, text: str, base: RunConfig = SHORT, **more: object) -> RunConfig:
    """Settings of a run with a plugin of this text, which is chosen and loaded."""
    choose([written(folder, text)])
    return base.with_(plugins=setting()).with_(**more)
