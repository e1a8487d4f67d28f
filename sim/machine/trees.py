"""Trees: another Ottla than this one, beside it, and a Python that has it first on its path.

A tree is a folder that has the package `ottla` in it. A copy of this one is made with some of its
files written otherwise, or left out. That is how a broken Ottla is run without a word in the code
for it, and how this one stays what it is.

| where a file lies | its name here |
|---|---|
| in a checkout, `raft/core.py`, `src/ottla/cli.py` | `raft/core.py`, `cli.py` |
| installed, `ottla/raft/core.py`, `ottla/cli.py` | `raft/core.py`, `cli.py` |
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from ottla.sim.machine.code_hash import PACKAGES

NAME = "ottla"
Changes = Mapping[str, bytes | None]
"""What files hold instead, by their names here; None: they are not there."""


def package() -> Path:
    """Where this Ottla lies."""
    return Path(str(files(f"{NAME}.sim"))).parent


def content(name: str) -> bytes | None:
    """What a file of this Ottla holds; None where there is none. Raises `OSError`."""
    path = _homes().get(name.partition("/")[0], _outer()) / name
    return path.read_bytes() if path.is_file() else None


def copied(folder: Path, changes: Changes) -> Path:
    """A tree in that folder: this Ottla with these changes. Raises `OSError`."""
    place = folder / NAME
    homes = _homes()
    top = _outer()
    ours = [str(each) for each in homes]
    shutil.copytree(top, place, ignore=lambda at, _: ours if Path(at) == top else [])
    for each, home in homes.items():
        shutil.copytree(home / each, place / each)
    for name, data in changes.items():
        path = place / name
        if data is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder


def surroundings(tree: Path) -> dict[str, str]:
    """The environment of a Python that takes this tree for Ottla; to be started with `-P`, or the
    folder that it is started in would come first."""
    behind = os.environ.get("PYTHONPATH")
    path = f"{tree}{os.pathsep}{behind}" if behind else str(tree)
    return {**os.environ, "PYTHONPATH": path}


def _outer() -> Path:
    """The folder of `ottla/__init__.py`."""
    return Path(str(files(NAME).joinpath("__init__.py"))).parent


def _homes() -> dict[str, Path]:
    """The folder that each package lies in: links are lost on some checkouts (`ottla/__init__`)."""
    return {each: Path(str(files(f"{NAME}.{each}"))).parent for each in PACKAGES}
