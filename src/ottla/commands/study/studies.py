"""`ottla study run`, `ottla study list`: the whole pipeline in one command.

Progress is one line that is redrawn; each stage that ended leaves a line. Status 1 means that the
study found something wrong with its own results. Status 2 is a mistake of the user, with a message
of one line. 130 and 143: SIGINT or SIGTERM came, and the study can be continued.
"""

from __future__ import annotations

import math
import shlex
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands.sim.asking import seed_of
from ottla.commands.sim.telling import say
from ottla.commands.study.progress import Display
from ottla.commands.study.stopping import terminable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.sim.studies.lake import Plan


Out = Annotated[
    str, typer.Option(metavar="PATH", help="Folder of the study; an unfinished study is continued.")
]
Processes = Annotated[
    int | None, typer.Option(min=1, max=1024, help="Processes, with DuckDB; 1 by default.")
]
Share = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Share of the runs with verdict ok that SQL judges, too."),
]
Wave = Annotated[
    int | None,
    typer.Option(min=1, help="Runs that are swept together; raise it for more than 40 cores."),
]


_GO_ON = "the same command goes on from here"


class StudyUsageError(typer.TyperException):
    """A mistake of the user; the text says in one line what is wrong and what to do."""


def run(
    name: Annotated[str, typer.Argument(help="A study that comes with Ottla, or a TOML file.")],
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
    """Run a study, from its file to its report."""
    with _told_plainly(out), terminable(f"stopped by SIGTERM; {_GO_ON}"):
        asked = _Asked(name, out, seeds, first, engine, master, jobs, _share(share), wave)
        told = _run(asked)
        say(told)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The command's arguments."""

    name: str
    out: str
    seeds: int | None
    first: str
    engine: str
    master: str | None
    jobs: int | None
    share: float | None
    wave: int | None


@contextmanager
def _told_plainly(out: str) -> Iterator[None]:
    """Report whatever ends a study in one line."""
    from ottla.sim.recording.record import NotTheSameError
    from ottla.sim.studies.study import StudyError, UntrustedError

    try:
        yield
    except UntrustedError as error:
        sys.stderr.write(f"ottla: {error}\n")
        raise typer.Exit(1) from None
    except StudyError as error:
        raise StudyUsageError(str(error)) from None
    except OSError as error:  # such as a full disk, or a folder that was removed
        raise StudyUsageError(
            f"{error.filename or out}: {error.strerror or error}; when that is mended {_GO_ON}"
        ) from None
    except NotTheSameError as error:
        wanted = "use that version of Ottla, or another --out"
        raise StudyUsageError(f"{error}: the study ran with other code; {wanted}") from None
    except KeyboardInterrupt:
        sys.stderr.write(f"ottla: interrupted; {_GO_ON}\n")
        raise typer.Abort from None


def _run(asked: _Asked) -> str:
    """Run the study; returns the text to print at the end."""
    from ottla.report.study.report import write
    from ottla.sim.studies.engine import open_engine
    from ottla.sim.studies.lake import Lake
    from ottla.sim.studies.pipeline import Pipeline
    from ottla.sim.studies.reporting import findings_of
    from ottla.sim.studies.rotten import report_corrupt_files

    plan, root = _plan(asked), _whole_path(asked.out)
    lake = Lake(root, plan)  # before anything is shown, so that an error is just one line
    with closing(lake), Display() as display:
        display.doing("engine")
        opened = open_engine(
            asked.engine,
            master=asked.master,
            jobs=asked.jobs,
            scratch=root,
            told=display.say,
            runs=plan.runs,
        )
        with closing(opened), report_corrupt_files(root):
            Pipeline(lake, opened, display.told, display.say).run()
            display.doing("report")
            findings = findings_of(lake, opened, _command(asked, plan))
        size = write(findings, plan.parsed, lake.report, display.doing)
    told = [findings.answer, *map(str, findings.breakdowns)]
    if more := findings.broke - len(findings.breakdowns):
        told.append(f"and {more:,} more runs broke: table runs, where broke is 1")
    return "\n".join((*told, f"{Path(asked.out) / lake.report.name}: {size:,} bytes"))


def _plan(asked: _Asked) -> Plan:
    """The plan of the study. All checks of the arguments are here, before the folder is made."""
    from ottla.sim.studies.binding import check_queries
    from ottla.sim.studies.engine import check_engine
    from ottla.sim.studies.kept import kept
    from ottla.sim.studies.plan import check_seeds, plan_of
    from ottla.sim.studies.study import read

    root = _whole_path(asked.out)
    study = read(asked.name)
    check_engine(asked.engine, asked.master, asked.jobs)  # before errors about missing queries
    check_queries(study)
    before = kept(root)
    seeds = asked.seeds or max(study.seeds, before.seeds if before else 0)
    check_seeds(study, seeds)
    share, wave = asked.share, asked.wave
    if before is not None:
        share, wave = before.share if share is None else share, wave or before.wave
    return plan_of(study, seeds, _first(asked.first, seeds), share, wave=wave)


def _share(share: float | None) -> float | None:
    if share is None:
        return None
    if math.isnan(share):
        raise StudyUsageError("--share nan: is not a number; give one from 0 to 1")
    return abs(share)  # of -0


def _first(text: str, seeds: int) -> int:
    """The first seed; the last one must fit into a column of a table."""
    first, most = seed_of(text), 2**63 - seeds
    if first > most:
        raise StudyUsageError(f"--first {text}: at most {most}, tables hold seeds below 2**63")
    return first


def _whole_path(out: str) -> Path:
    """The folder as an absolute path, because executors run in folders of their own. Links are not
    resolved: a shared folder has one name, but may lie elsewhere on each machine. Raises
    `StudyUsageError`."""
    if not out.strip():
        raise StudyUsageError("--out is empty; name a folder")
    if "://" in out:
        raise StudyUsageError(
            f"--out {out}: is a URL; name a folder that driver and executors see under one path"
        )
    path = Path(out)
    return path.resolve() if ".." in path.parts else path.absolute()


def _command(asked: _Asked, plan: Plan) -> str:
    """The command that makes this report again."""
    from ottla.sim.studies.lake import wave_of

    words = ["ottla", "study", "run", asked.name, "--seeds", str(plan.seeds), "--out", asked.out]
    if plan.first:
        words += ["--first", str(plan.first)]
    for option in ("engine", "master", "jobs", "share"):
        value = getattr(asked, option)
        if value not in (None, "auto"):
            words += [f"--{option}", str(value)]
    if plan.wave != wave_of(plan.runs):
        words += ["--wave", str(plan.wave)]
    return shlex.join(words)


def show() -> None:
    """List the studies that come with Ottla."""
    from ottla.sim.studies.findings import counted
    from ottla.sim.studies.study import catalogue, parse

    for name, text in catalogue().items():
        study = parse(text)
        variants, seeds = counted(len(study.variants), "variant"), counted(study.seeds, "seed")
        say(f"{name:18} {study.title}: {variants}, {seeds} each")
