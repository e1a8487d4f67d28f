"""Trees: another Ottla beside this one, and a Python that has it first on its path.

A tree is a folder with the package `ottla`. It is made as a copy of this Ottla with some files
changed or left out. So a broken Ottla can be run without any code for it in Ottla, and this one
stays unchanged.

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
"""The new content of files, by their names here; None: the file is left out."""


def package() -> Path:
    """The folder of this Ottla."""
    return Path(str(files(f"{NAME}.sim"))).parent


def content(name: str) -> bytes | None:
    """The content of a file of this Ottla; None: there is no such file. Raises `OSError`."""
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
    """The environment of a Python that uses this tree as Ottla; start it with `-P`, or its working
    folder would come first."""
    behind = os.environ.get("PYTHONPATH")
    path = f"{tree}{os.pathsep}{behind}" if behind else str(tree)
    return {**os.environ, "PYTHONPATH": path}


def _outer() -> Path:
    """The folder of `ottla/__init__.py`."""
    return Path(str(files(NAME).joinpath("__init__.py"))).parent


def _homes() -> dict[str, Path]:
    """The folder of each package: links are lost in some checkouts (`ottla/__init__`)."""
    return {each: Path(str(files(f"{NAME}.{each}"))).parent for each in PACKAGES}
