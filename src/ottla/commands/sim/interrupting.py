"""What a command prints when it is interrupted, as with Ctrl-C: one line on standard error.

A command with a line of progress declares what to print while it works: what is done by then, and
what is kept of it. By default the line says that nothing is kept. The process ends with status 130.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ottla.commands.sim.other_trees import keep_words
from ottla.commands.usage import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.commands.sim.telling import Line

NOTHING = "nothing is kept"


class Interruptible(TyperGroup):
    """Commands that print a line when they are interrupted, and may be those of another tree."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words behind `ottla sim`."""
        found: list[str] = super().parse_args(ctx, keep_words(ctx, args))
        return found

    def invoke(self, ctx: Any) -> Any:
        """Carry out the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            told = getattr(interrupt, "__notes__", None) or [NOTHING]
            with suppress(OSError):  # the reader may have been interrupted, too
                typer.echo(f"ottla: interrupted; {told[0]}", err=True)
            raise


@contextmanager
def interruptible(line: Line, told: Callable[[], str]) -> Iterator[None]:
    """For work with a line of progress, which is redrawn meanwhile. If the work is interrupted, the
    text of `told` replaces the line."""
    try:
        with line:
            yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(told())
        with suppress(OSError, UsageError):
            line.clear()
        raise
