"""What a command says that is interrupted, as with Ctrl-C: one line, on standard error.

A command that has a line of progress says around its work what is done by then, and what is kept of
it. Where nothing is said, nothing is kept. The process ends with status 130.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ottla.commands.sim.asking import SimUsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.commands.sim.telling import Line

NOTHING = "nothing is kept"


class Interruptible(TyperGroup):
    """Commands none of which ends without a word."""

    def invoke(self, ctx: Any) -> Any:
        """Carry out the command that was asked for."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            told = getattr(interrupt, "__notes__", None) or [NOTHING]
            with suppress(OSError):  # who reads it may have been interrupted as well
                typer.echo(f"ottla: interrupted; {told[0]}", err=True)
            raise


@contextmanager
def interruptible(line: Line, told: Callable[[], str]) -> Iterator[None]:
    """Around work that shows a line of progress, which beats meanwhile: if it is interrupted, the
    line gives way to what is `told`."""
    try:
        with line:
            yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(told())
        with suppress(OSError, SimUsageError):
            line.clear()
        raise
