"""`ottla sim experiment`: published figures, measured again.

The table goes to the terminal, its reasons numbered below it; with `--out` everything, the picture
included, into one HTML file, or the table as Markdown.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands.sim.asking import SimUsageError, check_out, seed_of
from ottla.commands.sim.explaining import there, write
from ottla.commands.sim.interrupting import NOTHING, interruptible
from ottla.commands.sim.telling import Line, say
from ottla.commands.usage import file

if TYPE_CHECKING:
    from ottla.sim.experiments.conduct import Done
    from ottla.sim.experiments.model import Experiment, Measured, Report

MODULES = ("pipelining", "idempotence", "acks")
WIDE = 160
"""Columns of a table where there is no terminal to ask."""


def experiment(
    name: Annotated[str, typer.Argument(help="pipelining, idempotence or acks.")],
    *,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many; each experiment has a default of its own.")
    ] = None,
    first: Annotated[str, typer.Option(help="The first seed.")] = "0",
    out: Annotated[
        Path | None,
        typer.Option(
            parser=file,
            metavar="FILE",
            help="Where it goes: .md Markdown, else a page with the picture.",
        ),
    ] = None,
) -> None:
    """A published table, measured again: pipelining, idempotence or acks."""
    from ottla.report.experiment.markdown import markdown
    from ottla.report.experiment.page import page

    chosen = _experiment_named(name)
    check_out(out)
    if out is not None:
        _check_replaced(out)
    start, count = seed_of(first), seeds or chosen.seeds
    measured = _conduct(chosen, range(start, start + count))
    report = chosen.report(measured)
    _tell(chosen, report)
    command = f"ottla sim experiment {name} --seeds {count} --first {start}"
    if out is not None:
        write(out, (markdown if out.suffix == ".md" else page)(chosen, report, command))
        say(f"\n{out}")


def _check_replaced(path: Path) -> None:
    """Whether what is there, if anything, is what an experiment wrote. Raises `SimUsageError`."""
    from ottla.report.experiment.markdown import is_section
    from ottla.report.experiment.page import is_page

    text = there(path)
    if text.strip() and not is_section(text) and not is_page(text):
        raise SimUsageError(f"{path}: is there, and no page of an experiment; name another file")


def _experiment_named(name: str) -> Experiment:
    from importlib import import_module

    if name not in MODULES:
        raise SimUsageError(f"no such experiment: {name}; there are {', '.join(MODULES)}")
    found: Experiment = import_module(f"ottla.sim.experiments.{name}").EXPERIMENT
    return found


def _conduct(chosen: Experiment, seeds: range) -> Measured:
    from ottla.sim.experiments.conduct import NoEndError, conduct

    line, begun, all_runs = Line(), monotonic(), len(chosen.variants) * len(seeds)
    runs = 0

    def told(done: Done) -> None:
        nonlocal runs
        runs = done.runs
        rate = done.runs / max(monotonic() - begun, 1e-9)
        name = ", ".join(map(str, done.key))
        line.show(f"{done.runs} of {done.of} runs, {rate:.1f} runs/s: seed {done.seed}, {name}")

    line.doing("running the first seed")
    try:
        with interruptible(line, lambda: f"{runs} of {all_runs} runs are done, {NOTHING}"):
            return conduct(chosen, seeds, told)
    except NoEndError as error:
        line.over(f"no figures: {error}")
        raise typer.Exit(1) from None
    finally:
        line.end()


def _tell(chosen: Experiment, report: Report) -> None:
    import rich.box
    from rich.console import Console
    from rich.table import Table

    notes = list(dict.fromkeys(line.reason for line in report.lines))
    table = Table(box=rich.box.SIMPLE_HEAD, show_edge=False)
    for column in report.columns:
        table.add_column(column.head, justify="right" if column.number else "left")
    table.add_column("why", justify="right")
    for line in report.lines:
        table.add_row(*line.cells, str(notes.index(line.reason) + 1))
    say(f"{chosen.title}\n{chosen.question}\nPublished: {chosen.published}")
    for thing, how in chosen.conditions:
        say(f"  {thing}: {how}")
    say("")
    console = Console(highlight=False, markup=False)
    if not sys.stdout.isatty():
        console.width = WIDE
    console.print(table)
    for number, note in enumerate(notes, 1):
        say(f"{number:3}  {note}")
    say("")
    for finding in report.findings:
        say(f"- {finding}")
