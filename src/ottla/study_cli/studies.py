"""`ottla study run`, `ottla study list`: the whole pipeline in one command.

Progress goes to one line that moves; each stage that is over stays. Status 2 is a mistake of the
user's, told in one line; 1 means that the study itself found something wrong with its results.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.sim_cli.asking import Jobs, seed_of
from ottla.sim_cli.telling import Line, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.sim.studies.pipeline import Progress


class StudyUsageError(typer.TyperException):
    """The user can do something about it; the text is one line that says what."""


def run(
    name: Annotated[str, typer.Argument(help="A study that ships, or a TOML file.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder; a study there is gone on with.")],
    seeds: Annotated[int | None, typer.Option(min=1, help="How many, for each variant.")] = None,
    first: Annotated[str, typer.Option(help="The first seed.")] = "0",
    engine: Annotated[str, typer.Option(help="spark, duckdb or auto.")] = "auto",
    master: Annotated[str | None, typer.Option(help="Spark's master, such as local[4].")] = None,
    jobs: Jobs = 1,
    share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Of clean runs that SQL judges too.")
    ] = None,
) -> None:
    """Simulate, keep, judge, aggregate, report: a study from its file to its page."""
    from ottla.sim.studies.engine import open_engine
    from ottla.sim.studies.lake import Lake
    from ottla.sim.studies.pipeline import Pipeline
    from ottla.sim.studies.plan import plan_of
    from ottla.sim.studies.study import StudyError, read

    line = Line()
    try:
        study = read(name)
        plan = plan_of(study, seeds or study.seeds, seed_of(first), share)
        lake = Lake(out, plan)
        opened = open_engine(engine, master=master, jobs=jobs, told=line.over)
        try:
            Pipeline(lake, opened, _teller(line)).run()
        finally:
            opened.close()
    except StudyError as error:
        line.clear()
        raise StudyUsageError(str(error)) from None
    line.clear()


def _teller(line: Line) -> Callable[[Progress], None]:
    def told(progress: Progress) -> None:
        rate = progress.fresh / max(progress.seconds, 1e-9)
        what = "runs" if progress.stage == "sweep" else "tables"
        text = (
            f"{progress.stage:6}  {progress.done:,} of {progress.of:,} {what}, "
            f"{progress.rows:,} rows, {rate:,.1f} {what}/s, {progress.seconds:.0f} s"
        )
        if progress.done == progress.of:
            line.over(text)
        else:
            line.show(text)

    return told


def show() -> None:
    """The studies that ship."""
    from ottla.sim.studies.study import catalogue, parse

    for name, text in catalogue().items():
        study = parse(text)
        say(f"{name:18} {study.title}: {len(study.variants)} variants, {study.seeds} seeds each")
