"""The plan of a study: what it takes to have the same runs again.

A study is gone on with under the same plan only. So the plan knows the code, not merely its
version: a hash over every module that has a part in a run.
"""

from __future__ import annotations

import subprocess
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from shutil import which

from ottla.sim.studies.bronze import SCHEMA_VERSION
from ottla.sim.studies.lake import Plan, wave_of
from ottla.sim.studies.ship import sources
from ottla.sim.studies.study import Study

JUDGED_WHOLLY = 2_000
"""Up to so many runs SQL judges every one of them."""
SHARE = 0.05


def plan_of(
    study: Study,
    seeds: int,
    first: int,
    share: float | None = None,
    wave: int | None = None,
) -> Plan:
    """The plan of a study by the code that is here."""
    runs = seeds * len(study.variants)
    if share is None:
        share = 1.0 if runs <= JUDGED_WHOLLY else SHARE
    versions = {"ottla": _version(), "code": code()}
    return Plan(
        study.text, seeds, first, share, wave or wave_of(runs), SCHEMA_VERSION, versions, commit()
    )


def _version() -> str:
    try:
        return version("ottla")
    except PackageNotFoundError:  # a zip on the path
        return "unknown"


def code() -> str:
    """Sixteen letters over every module and every statement that has a part in a run."""
    told = blake2b(digest_size=8)
    for name, data in sources():
        told.update(name.encode() + b"\0" + data + b"\0")
    return told.hexdigest()


def commit() -> str | None:
    """The commit of the checkout that this code lies in; None where it lies in none."""
    git, place = which("git"), Path(str(files("ottla.sim")))
    if git is None or not place.is_dir():
        return None
    told = subprocess.run(  # noqa: S603 - git itself, asked about our own folder
        [git, "-C", str(place.resolve()), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or None
