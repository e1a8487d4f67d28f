"""`ottla sim export`: the history of a run, for checkers that others wrote."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands.sim.asking import ConfigFile, Settings, What, check_out, outcome_of
from ottla.commands.sim.telling import say
from ottla.commands.usage import UsageError, file_option, refused

if TYPE_CHECKING:
    from collections.abc import Iterable


class Shape(Enum):
    """How a history is written."""

    JSONL = "jsonl"
    EDN = "edn"


def export(
    what: What,
    *,
    to: Annotated[
        Shape,
        typer.Option(help="jsonl: every row; edn: what clients did, as Jepsen writes it."),
    ] = Shape.JSONL,
    config: ConfigFile = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, file_option("Where the history goes; by default it is printed.")
    ] = None,
) -> None:
    """Write the history of a run for a checker of your own.

    The opening comments of sim/history/history.py and sim/history/export.py say what is written.
    The verdict goes to standard error. It has no part in the status, which is 0.
    """
    from ottla.sim.history.export import edn_lines, json_lines

    check_out(out)
    outcome = outcome_of(what, config, settings)
    lines = (json_lines if to is Shape.JSONL else edn_lines)(outcome.rows)
    if out is None:
        for line in lines:
            say(line)
    else:
        _write(out, lines)
    typer.echo(f"{outcome.verdict.value}: {outcome.reason}", err=True)


def _write(path: Path, lines: Iterable[str]) -> None:
    """Raises `UsageError`."""
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise UsageError(f"{path}: {refused(error)}") from None
