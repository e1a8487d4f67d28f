"""`ottla sim validate`: runs checked step by step against the specification.

Every run is checked like that, and a step that is not allowed breaks sim-I52. This command tells
more of the step than one line. Each run with such a step is printed at once, with the commands that
come next.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands.sim.asking import (
    AsJson,
    ConfigFile,
    Jobs,
    Settings,
    config_of,
    outcome_of,
    seed_of,
    taped,
)
from ottla.commands.sim.explaining import given
from ottla.commands.sim.interrupting import NOTHING, interruptible
from ottla.commands.sim.telling import Line, say, say_object
from ottla.commands.usage import UsageError

if TYPE_CHECKING:
    from ottla.sim.recording.validation import Validation
    from ottla.sim.settings.settings import RunConfig

SEEDS = 100


def validate(
    what: Annotated[
        str | None, typer.Argument(help="A seed, or a file with a tape; by default many seeds.")
    ] = None,
    *,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many; 100 by default.")] = None,
    first: Annotated[str | None, typer.Option(help="The first seed; 0 by default.")] = None,
    jobs: Jobs = 1,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Check each step of runs against a second, independent model of Raft, in-sync and reads.

    The page docs/reference/specification.md says what it allows. For the first step of a run that
    it does not allow, this prints the event, why not, the state before, and what is allowed. Ends
    with status 1 if a run has such a step.
    """
    shared = given(config, settings)
    if what is None:
        _many(seeds or SEEDS, first or "0", jobs, (config, settings), _Told(shared, as_json))
    elif seeds is not None or first is not None or jobs != 1:
        raise UsageError(f"{what} is one run; leave it out, or --seeds, --first and --jobs")
    else:
        _one(what, config, settings, _Told(shared, as_json))


def _one(what: str, config: Path | None, settings: list[str] | None, told: _Told) -> None:
    from ottla.sim.recording.validation import validated

    outcome = outcome_of(what, config, settings)
    _check_budget(outcome.config)
    told.add(validated(outcome, None if taped(what) else seed_of(what)), what)
    told.end()


def _many(
    seeds: int,
    first: str,
    jobs: int,
    asked: tuple[Path | None, list[str] | None],
    told: _Told,
) -> None:
    from ottla.sim.recording.validation import validate as validate_seeds

    start, chosen = seed_of(first), config_of(*asked)
    _check_budget(chosen)
    line, begun = Line(), monotonic()
    told.line = line
    line.doing("running the first seeds")
    with interruptible(line, lambda: f"{told.runs} of {seeds} seeds are done, {NOTHING}"):
        for found in validate_seeds(range(start, start + seeds), chosen.told(), jobs):
            told.add(found, str(found.seed))
            rate = told.runs / max(monotonic() - begun, 1e-9)
            line.show(
                f"{told.runs} of {seeds} seeds, {told.refused} not allowed, {rate:.1f} seeds/s"
            )
    line.clear()
    told.end()


def _check_budget(config: RunConfig) -> None:
    """Raises `UsageError`."""
    from ottla.sim.nemesis.beyond import beyond_the_budget

    if beyond_the_budget(config):
        raise UsageError(
            f"faults are {config.faults}: no Raft survives all of them, so the specification"
            " forbids what they do; leave these out"
        )


class _Told:
    """Prints what was found."""

    def __init__(self, shared: list[str], as_json: bool):
        self.runs = self.refused = self.steps = 0
        self.line: Line | None = None
        self._shared, self._as_json = shared, as_json

    def add(self, found: Validation, what: str) -> None:
        """One more run."""
        self.runs += 1
        self.steps += found.steps
        self.refused += bool(found.told)
        if self._as_json:
            say_object({**found._asdict(), "again": self._command("validate", what)})
        elif found.told:
            for each in self._lines(found, what):
                self._say(each)

    def end(self) -> None:
        """Print the totals, and end the command."""
        if self._as_json:
            say_object({"runs": self.runs, "steps": self.steps, "refused": self.refused})
        else:
            runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
            wrong = f"{self.refused} with a step that is not allowed"
            say(f"{runs}, {self.steps} steps: {wrong if self.refused else 'all are allowed'}")
        raise typer.Exit(1 if self.refused else 0)

    def _lines(self, found: Validation, what: str) -> list[str]:
        return [
            f"{what}: not allowed",
            *(f"  {each}" for each in found.told),
            f"  the verdict: {found.verdict}, {found.reason}",
            f"  {self._command('validate', what)}",
            f"  {self._command('explain', what)}",
        ]

    def _command(self, verb: str, what: str) -> str:
        return shlex.join(["ottla", "sim", verb, what, *self._shared])

    def _say(self, text: str) -> None:
        if self.line is None:
            say(text)
        else:
            self.line.over(text)
