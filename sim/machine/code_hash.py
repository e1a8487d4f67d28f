"""Which code this is: files of runs name it, because other code may give other runs."""

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
"""The packages that a run consists of."""
_DATA = (".sql", ".toml", ".txt")
_OWN = "code_hash.py"
_APART = (
    "sim/mutants/planted.toml",
    "sim/studies/audit/",
    "sim/studies/catalogue/",
    "sim/studies/topics/",
)
"""Files without a part in a run or in its tables. The texts of a shipped study are compared
themselves (`Study.decides`), topics of brokers are not simulated, and a planted mutant counts by
the code that it changes."""
CHANGES = "+changes"
"""Suffix of a commit whose files were changed since."""


def sources() -> Iterator[tuple[str, bytes]]:
    """Every module and data file that simulates, or that makes tables and pages of simulated runs,
    with its path in `ottla`, in order."""
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
    """Hash of every module and every statement that has a part in a run, or in the tables of a
    study: 16 hex digits."""
    told = blake2b(digest_size=8)
    for name, data in sources():
        if name.startswith(_APART):
            continue
        told.update(name.encode() + b"\0" + data + b"\0")
    return told.hexdigest()


def commit() -> str | None:
    """The commit of the checkout with this code; with `+changes` if files of that commit were
    changed since; None: it is no checkout. For people: another commit may have the same code.
    Untracked files do not count: a run may have written them, and they can have a part in a run
    only if a tracked file was changed."""
    place = Path(str(files("ottla.sim")))
    if not place.is_dir() or _git(place, "ls-files", "--error-unmatch", _OWN) is None:
        return None  # or it would be the commit of a project that has Ottla installed below it
    found = _git(place, "rev-parse", "HEAD")
    changes = _git(place, "status", "--porcelain", "--untracked-files=no")
    return f"{found}{CHANGES}" if found and changes else found


def _git(place: Path, *asked: str) -> str | None:
    """The output of git there; None: it refuses, or is missing."""
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
