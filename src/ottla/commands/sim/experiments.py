"""`ottla sim experiment`: experiments are studies now; it names the command of the study."""

from __future__ import annotations

from typing import Annotated

import typer

from ottla.commands.usage import UsageError

MOVED = ("acks", "idempotence", "pipelining")
OLD_OPTIONS = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Accepts all options of the former experiments, so that the error is about the study only."""


def experiment(
    name: Annotated[str, typer.Argument(help="pipelining, idempotence or acks.")],
) -> None:
    """Names the study that replaced an experiment. Always raises `UsageError`."""
    from ottla.broker.arguments.spelling import called, listed
    from ottla.sim.studies.study import catalogue

    if name in MOVED:
        raise UsageError(f"sim experiment {name} is now a study: ottla study run {name}")
    there = listed(catalogue())
    raise UsageError(
        f"no such experiment: {called(name)}; experiments are studies now, and there are {there}: "
        "ottla study run NAME"
    )
