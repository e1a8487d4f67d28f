"""The CPythons of this machine: which exist, which can do a task, and what they print.

They are searched by name in the PATH, and among pyenv's versions. Each is asked for its version and
tries the task at once. One is returned for each minor version.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import NamedTuple, TypeAlias

MINORS = range(11, 20)
"""Minor versions of Python 3: Ottla needs 3.11, and later ones are searched as well."""
_ASK = "import sys; print(sys.implementation.name, *sys.version_info[:2]); {task}"

Child: TypeAlias = "subprocess.Popen[str]"


class InterpreterError(Exception):
    """An interpreter cannot run what it was asked to; the text says which and why."""


class Found(NamedTuple):
    """An interpreter."""

    path: str
    lacks: str
    """Why it could not do the task, with its path; empty: it could."""


def mine() -> str:
    """The version that runs this, such as 3.11."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def pythons(task: str = "pass") -> dict[str, Found]:
    """One interpreter for each minor version of CPython, in order; one that can do the task (a
    statement), if there is one."""
    found: dict[str, Found] = {}
    for path in _candidates():
        version, lacks = tried(path, task)
        if version not in found or (found[version].lacks and not lacks):
            found[version] = Found(path, lacks)
    wanted = [f"3.{minor}" for minor in MINORS]
    return {minor: found[minor] for minor in wanted if minor in found}


def _candidates() -> Iterator[str]:
    """Paths that may be interpreters, this one first."""
    yield sys.executable
    homes = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in MINORS:
        found = shutil.which(f"python3.{minor}")
        if found is not None:
            yield found
        yield from map(str, sorted(homes.glob(f"3.{minor}.*/bin/python")))


def tried(path: str, task: str) -> tuple[str, str]:
    """The version of a CPython, empty for anything else; and what it lacks for a task."""
    told, lacks = "", ""
    try:
        for line in said(path, ["-c", _ASK.format(task=task)], {}):
            told = told or line
    except InterpreterError as error:
        lacks = str(error)
    name, _, version = told.partition(" ")
    return (version.replace(" ", ".") if name == "cpython" else ""), lacks


def said(
    interpreter: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    children: list[Child] | None = None,
) -> Iterator[str]:
    """The output of a fresh process with this very code, line by line; the process is added to
    `children`.

    Raises `InterpreterError` if there is no such interpreter, or if it fails.
    """
    # This very code, whatever the interpreter has installed.
    surroundings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **environment}
    try:
        with subprocess.Popen(  # noqa: S603 - our own code; who runs it was found or named
            [interpreter, *arguments], env=surroundings, stdout=PIPE, stderr=PIPE, text=True
        ) as child:
            if children is not None:
                children.append(child)
            assert child.stdout is not None, "piped"
            assert child.stderr is not None, "piped"
            for line in child.stdout:
                yield line.rstrip("\n")
            told = child.stderr.read()
    except OSError as error:
        raise InterpreterError(f"{interpreter}: {error.strerror}") from None
    if child.returncode:
        why = told.strip() or f"ended with status {child.returncode}"
        raise InterpreterError(f"{interpreter}: {why.splitlines()[-1]}")
