"""Which code this is: what is kept of runs names it, for other code may make other runs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from shutil import which

PACKAGES = ("broker", "idempotency", "log", "raft", "sim")
"""What a run is made of."""
_DATA = (".sql", ".toml", ".txt")
_OWN = "code_hash.py"
_APART = (
    "sim/mutants/planted.toml",
    "sim/studies/audit/",
    "sim/studies/catalogue/",
    "sim/studies/topics/",
)
"""Has no part in a run or in the tables that are made of it: what a shipped study asks for is
compared word by word (`Study.decides`), topics of brokers are not simulated, and a planted mutant
has its part as the code that it changes."""
CHANGES = "+changes"
"""Stands behind a commit that is not all of the code."""


def sources() -> Iterator[tuple[str, bytes]]:
    """Every module and data file that simulates, or makes tables and pages of what was simulated,
    by its place in `ottla`, in order."""
    for package in PACKAGES:
        yield from _below(files(f"ottla.{package}"), package)


def _below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        name = f"{path}/{each.name}"
        if each.is_dir():
            yield from _below(each, name)
        elif name.endswith((".py", *_DATA)):
            yield name, each.read_bytes()


@cache
def code() -> str:
    """Sixteen letters over every module and every statement that has a part in a run, or in the
    tables of a study."""
    told = blake2b(digest_size=8)
    for name, data in sources():
        if name.startswith(_APART):
            continue
        told.update(name.encode() + b"\0" + data + b"\0")
    return told.hexdigest()


def commit() -> str | None:
    """The commit of the checkout that this code lies in, with `+changes` behind it where files of
    that commit were changed since; None where it lies in none. For people: another commit may have
    the same code. Files that no commit has are no change: they may be what a run has written, and
    for one to have a part in a run another must have been changed."""
    place = Path(str(files("ottla.sim")))
    if not place.is_dir() or _git(place, "ls-files", "--error-unmatch", _OWN) is None:
        return None  # or it would be the commit of whoever has installed Ottla below a project
    found = _git(place, "rev-parse", "HEAD")
    changes = _git(place, "status", "--porcelain", "--untracked-files=no")
    return f"{found}{CHANGES}" if found and changes else found


def _git(place: Path, *asked: str) -> str | None:
    """What git says there; None where it refuses, or is missing."""
    git = which("git")
    if git is None:
        return None
    told = subprocess.run(  # noqa: S603 - git itself, asked about our own folder
        [git, "--no-optional-locks", "-C", str(place.resolve()), *asked],
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() if told.returncode == 0 else None
