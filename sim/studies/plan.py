"""The plan of a study: what is needed to have the same runs again.

A study is continued only under the same plan. So the plan contains the code, not just its version:
a hash over every module that has a part in a run.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from ottla.sim.machine.code_hash import code
from ottla.sim.studies.findings import counted
from ottla.sim.studies.lake import BATCH_ROWS, Plan, wave_of
from ottla.sim.studies.origin import commit_here
from ottla.sim.studies.study import Study, StudyError
from ottla.sim.studies.versions import VERSION

JUDGED_WHOLLY = 2_000
"""Up to so many runs, SQL judges every one."""
SHARE = 0.05
MOST_RUNS = 1_000_000_000
"""Most runs of a study: years of work, and a million waves."""


def plan_of(
    study: Study,
    seeds: int,
    first: int,
    share: float | None = None,
    *,
    wave: int | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Plan:
    """The plan of a study with the present code. Raises `StudyError`."""
    check_seeds(study, seeds)
    runs = seeds * len(study.variants)
    if share is None:
        share = 1.0 if runs <= JUDGED_WHOLLY else SHARE
    versions = {"ottla": _version(), "code": code()}
    return Plan(
        study=study.text,
        seeds=seeds,
        first=first,
        share=share,
        wave=wave or wave_of(runs),
        batch_rows=batch_rows,
        schema=VERSION,
        versions=versions,
        commit=commit_here(),
    )


def check_seeds(study: Study, seeds: int) -> None:
    """Raises `StudyError` for more seeds than could ever be run."""
    variants = len(study.variants)
    if seeds * variants > MOST_RUNS:
        raise StudyError(
            f"{seeds} seeds: at most {MOST_RUNS // variants} with {counted(variants, 'variant')}; "
            f"a study has at most {MOST_RUNS:,} runs"
        )


def _version() -> str:
    try:
        return version("ottla")
    except PackageNotFoundError:  # a zip on the path
        return "unknown"
