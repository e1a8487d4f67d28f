"""Fresh processes, and the CPythons that are found on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MINORS = range(11, 15)


def fresh(
    arguments: Sequence[str], *, python: str = sys.executable, hash_seed: str = "random"
) -> str:
    """Run `python arguments` with this tree on its path; returns what it printed."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests" / "lib")])
    done = subprocess.run(
        [python, *arguments],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _candidates() -> Iterator[str]:
    yield sys.executable
    homes = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in MINORS:
        found = shutil.which(f"python3.{minor}")
        if found is not None:
            yield found
        yield from map(str, sorted(homes.glob(f"3.{minor}.*/bin/python")))


def pythons() -> dict[str, str]:
    """One interpreter for each minor version of CPython that runs here."""
    found: dict[str, str] = {}
    what = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    for candidate in _candidates():
        done = subprocess.run([candidate, "-c", what], capture_output=True, text=True, check=False)
        name, _, version = done.stdout.strip().partition(" ")
        if done.returncode == 0 and name == "cpython":
            found.setdefault(version.replace(" ", "."), candidate)
    return {
        each: found[each] for each in sorted(found) if int(each.partition(".")[2]) >= MINORS.start
    }
