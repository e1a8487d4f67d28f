"""The commands of `ottla study`: one line each."""

from __future__ import annotations

import typer

from ottla.commands.study import audit, studies

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Studies: many runs, kept as tables, judged and aggregated in SQL.",
)
app.command()(studies.run)
app.command("list")(studies.show)
app.command()(audit.audit)
