"""`ottla study run`, `ottla study list`: the whole pipeline in one command.

Progress goes to one line that moves; each stage that is over stays. Status 2 is a mistake of the
user's, told in one line; 1 means that the study itself found something wrong with its results.
"""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.sim_cli.asking import seed_of
from ottla.sim_cli.telling import say
from ottla.study_cli.progress import Display

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.sim.studies.lake import Plan


Out = Annotated[str, typer.Option(metavar="PATH", help="Folder; a study there is gone on with.")]
Processes = Annotated[
    int | None, typer.Option(min=1, max=1024, help="Processes of DuckDB's; 1 if not said.")
]
Share = Annotated[
    float | None, typer.Option(min=0, max=1, help="Of clean runs that SQL judges too.")
]
Wave = Annotated[
    int | None, typer.Option(min=1, help="Runs swept together; more for over 40 cores.")
]


class StudyUsageError(typer.TyperException):
    """The user can do something about it; the text is one line that says what."""


def run(
    name: Annotated[str, typer.Argument(help="A study that ships, or a TOML file.")],
    *,
    out: Out,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many, for each variant.")] = None,
    first: Annotated[str, typer.Option(help="The first seed.")] = "0",
    engine: Annotated[str, typer.Option(help="spark, duckdb or auto.")] = "auto",
    master: Annotated[str | None, typer.Option(help="Spark's master, such as local[4].")] = None,
    jobs: Processes = None,
    share: Share = None,
    wave: Wave = None,
) -> None:
    """Simulate, keep, judge, aggregate, report: a study from its file to its page."""
    from ottla.sim.recording.record import NotTheSameError
    from ottla.sim.studies.binding import check_queries
    from ottla.sim.studies.engine import open_engine
    from ottla.sim.studies.lake import Lake, wave_kept
    from ottla.sim.studies.pipeline import Pipeline
    from ottla.sim.studies.plan import plan_of
    from ottla.sim.studies.reporting import findings_of
    from ottla.sim.studies.study import DisagreementError, StudyError, read
    from ottla.study.report import write

    try:
        root = _whole_path(out)
        study = read(name)
        check_queries(study)
        wave = wave or wave_kept(root)
        seeds = seeds or study.seeds
        plan = plan_of(study, seeds, _first(first, seeds), share, wave=wave)
        said = {"engine": engine, "master": master, "jobs": jobs, "share": share}
        lake = Lake(root, plan)
        with closing(lake), Display() as display:
            display.doing("engine")
            opened = open_engine(engine, master=master, jobs=jobs, scratch=root, told=display.say)
            with closing(opened):
                Pipeline(lake, opened, display.told).run()
                display.doing("report")
                command = _command(name, plan, out, said)
                findings = findings_of(lake, opened, command, jobs or 1)
            size = write(findings, study, lake.report, display.doing)
    except DisagreementError as error:
        sys.stderr.write(f"ottla: {error}\n")
        raise typer.Exit(1) from None
    except StudyError as error:
        raise StudyUsageError(str(error)) from None
    except OSError as error:  # a disk that is full, a folder that went away
        raise StudyUsageError(f"{error.filename or out}: {error.strerror or error}") from None
    except NotTheSameError as error:
        raise StudyUsageError(f"{error}: the code is not the one that ran it") from None
    say(f"{findings.answer}\n{Path(out) / lake.report.name}: {size:,} bytes")


def _first(text: str, seeds: int) -> int:
    """The first seed, so that the last one has its place in a table."""
    first, most = seed_of(text), 2**63 - seeds
    if first > most:
        raise StudyUsageError(f"--first {text}: at most {most}, tables hold seeds below 2**63")
    return first


def _whole_path(out: str) -> Path:
    """The folder as executors may be told of it, who run in folders of their own. Links stay: what
    is shared has one name, and may lie elsewhere on each machine. Raises `StudyUsageError`."""
    if "://" in out:
        raise StudyUsageError(
            f"--out {out}: is a URL; name a folder that driver and executors see under one path"
        )
    path = Path(out)
    return path.resolve() if ".." in path.parts else path.absolute()


def _command(name: str, plan: Plan, out: str, said: Mapping[str, object]) -> str:
    """What makes this report again, as it was said."""
    from ottla.sim.studies.lake import wave_of

    words = ["ottla", "study", "run", name, "--seeds", str(plan.seeds), "--out", out]
    if plan.first:
        words += ["--first", str(plan.first)]
    for option, value in said.items():
        if value not in (None, "auto"):
            words += [f"--{option}", str(value)]
    if plan.wave != wave_of(plan.runs):
        words += ["--wave", str(plan.wave)]
    return shlex.join(words)


def show() -> None:
    """The studies that ship."""
    from ottla.sim.studies.study import catalogue, parse

    for name, text in catalogue().items():
        study = parse(text)
        say(f"{name:18} {study.title}: {len(study.variants)} variants, {study.seeds} seeds each")
