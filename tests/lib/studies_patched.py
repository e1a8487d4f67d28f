"""A study as a user runs it, with code of a test's own in every process of it.

Python takes up `sitecustomize` from PYTHONPATH in each process, those of a pool and of Spark too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cli_process import PROGRAM
from studies_tiny import TINY


def run_patched(
    folder: Path, code: str, *options: str, seeds: int
) -> subprocess.CompletedProcess[str]:
    """The tiny study into `folder`/out, in waves of three runs; `code` is run first in each process
    of it, nothing where it is empty."""
    (folder / "tiny.toml").write_text(TINY)
    (folder / "patch").mkdir(exist_ok=True)
    (folder / "patch" / "sitecustomize.py").write_text(code)
    path = [str(folder / "patch"), *filter(None, [os.environ.get("PYTHONPATH")])]
    asked = ["tiny.toml", "--seeds", str(seeds), "--wave", "3", "--out", "out", *options]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "study", "run", *asked],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "SPARK_LOCAL_IP": "127.0.0.1"},
        check=False,
        capture_output=True,
        text=True,
    )
