"""The commands of `ottla sim`: one line each.

| module | what is in it |
|---|---|
| `runs` | one run: `run`, `replay`, `show`, `diff`, `shrink` |
| `explaining` | one run, explained: `explain` |
| `exporting` | one run, for other checkers: `export` |
| `validating` | runs, checked step by step against the specification: `validate` |
| `playing` | a scenario of your own, played: `play` |
| `asking_why` | when a failure became inevitable: `why` |
| `covering`, `counts` | what many runs reached: `coverage`, which was `cover` |
| `experiments` | names the study that replaced an experiment: `experiment` |
| `sweeps` | many runs: `sweep`, `mutants` |
| `blind` | `mutants --blind` |
| `comparing` | many runs, each in several processes: `meta` |
| `other_trees` | `--patch`, `--tree` and `--plugin`, which any of them takes |
| `asking` | arguments that commands share: seeds, settings, tapes |
| `telling` | output that commands share |
| `interrupting` | what an interrupted command prints |

These modules only read arguments and print. `ottla.sim` does the work.
"""

from __future__ import annotations

import typer

from ottla.commands.sim import (
    asking_why,
    comparing,
    covering,
    experiments,
    explaining,
    exporting,
    playing,
    runs,
    sweeps,
    validating,
)
from ottla.commands.sim.interrupting import Interruptible
from ottla.commands.sim.other_trees import choose

app = typer.Typer(
    cls=Interruptible,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
app.callback()(choose)
app.command()(runs.run)
app.command()(runs.replay)
app.command()(runs.show)
app.command()(runs.diff)
app.command()(sweeps.sweep)
app.command()(runs.shrink)
app.command()(explaining.explain)
app.command()(playing.play)
app.command()(exporting.export)
app.command()(validating.validate)
app.command()(asking_why.why)
app.command()(covering.coverage)
app.command("cover", hidden=True)(covering.coverage)
app.command()(comparing.meta)
app.command(hidden=True, context_settings=experiments.OLD_OPTIONS)(experiments.experiment)
app.command()(sweeps.mutants)
