"""Fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
