"""Patches: the content of Ottla's files with a patch in the format of `git diff` and `diff -u`.

git does the work: the files that the patch names are copied into a folder of their own, as in a
checkout, `git apply` changes them there, and their content is read back. So if a patch does not
fit, git says why in its own words. Changes of a patch outside the package, such as tests and
documents, have no part in a run and are left out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ottla.sim.machine import trees
from ottla.sim.machine.code_hash import PACKAGES

_SOURCE = "src/ottla/"
"""Where a checkout has the files that are in no package of their own."""


class PatchError(Exception):
    """The patch is invalid, or does not fit this code; the text is one line that says why."""


class Patched(NamedTuple):
    """The result of a patch."""

    changes: trees.Changes
    left_out: tuple[str, ...]
    """Files outside the package that it changes."""


def patched(patch: Path) -> Patched:
    """The content of files with this patch. Raises `PatchError`, and `OSError` for a patch that
    cannot be read."""
    data = patch.read_bytes()
    with TemporaryDirectory(prefix="ottla-patch-") as folder:
        place = Path(folder)
        depth, names = _named(place, data)
        ours = [each for each in names if _ours(each)]
        if not ours:
            told = f"it changes {', '.join(names[:3])}" if names else "it changes no file"
            raise PatchError(f"{told}, and nothing of the package (raft/core.py, src/ottla/cli.py)")
        for each in ours:
            there = trees.content(each.removeprefix(_SOURCE))
            if there is not None:
                path = place / each
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(there)
        _git(place, data, depth, *(f"--include={each}" for each in ours))
        changes = {each.removeprefix(_SOURCE): _content(place / each) for each in ours}
    return Patched(changes, tuple(each for each in names if each not in ours))


def _named(place: Path, data: bytes) -> tuple[str, Sequence[str]]:
    """How many folders in front of a name are not its own (`-p1`: git's a/ and b/), and the files
    that the patch names. Raises `PatchError`."""
    told = {depth: _names(place, data, depth) for depth in ("-p1", "-p0")}
    for depth, names in told.items():
        if any(map(_ours, names)):
            return depth, names
    return "-p1", told["-p1"]


def _names(place: Path, data: bytes, depth: str) -> list[str]:
    """The names of files, each once; a renamed file has two names. Raises `PatchError`."""
    found = []
    for each in _git(place, data, depth, "--numstat", "-z").split("\0"):
        name = each.rsplit("\t", 1)[-1]
        if name and name not in found:
            found.append(name)
    return found


def _ours(name: str) -> bool:
    """Whether a file, by its name in a checkout, is in the package."""
    return name.startswith((*(f"{each}/" for each in PACKAGES), _SOURCE))


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _git(place: Path, data: bytes, *options: str) -> str:
    """The output of `git apply` there. Raises `PatchError`."""
    git = which("git")
    if git is None:
        raise PatchError("git, which applies patches, is missing; install it, or use --tree DIR")
    # A temporary folder may lie in a checkout, whose git variables must not apply.
    outside = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    done = subprocess.run(  # noqa: S603 - git, with a patch as its input
        [git, "apply", "--whitespace=nowarn", *options],
        cwd=place,
        env=outside | {"GIT_CEILING_DIRECTORIES": str(place.parent), "LC_ALL": "C"},
        input=data,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        if b"No valid patches" in done.stderr:
            raise PatchError("is not a patch in the format of `git diff` and `diff -u`")
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise PatchError("; ".join(each.removeprefix("error: ") for each in lines[:2]))
    return done.stdout.decode(errors="surrogateescape")
