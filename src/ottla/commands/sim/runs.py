"""`ottla sim run`, `replay`, `show`, `diff`, `shrink`: one run.

A run is named by its seed and the settings of its sweep, or by a file with its tape, which has its
own settings. Each command imports what it needs of the simulator itself, so that `ottla up` does
not pay for it. Status 1 means that something was found, such as an anomaly or a difference. Status
2 is a mistake of the user (`UsageError`). `shrink` starts from a known anomaly: its status is 0
when it is done.
"""

from __future__ import annotations

import shlex
from math import isnan
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands.sim.asking import (
    AsJson,
    ConfigFile,
    Failure,
    Settings,
    What,
    Whole,
    check_out,
    config_of,
    keep,
    outcome_of,
    seed_of,
    taped,
    whole_of,
)
from ottla.commands.sim.interrupting import interruptible
from ottla.commands.sim.other_trees import words_of_others
from ottla.commands.sim.telling import Line, busy, passed, say, say_object, tell
from ottla.commands.sim.telling import show as show_outcome
from ottla.commands.usage import UsageError, file_option

if TYPE_CHECKING:
    from ottla.sim.run import Outcome
    from ottla.sim.sweeps.tape_file import Case


def run(
    *,
    seed: Annotated[str, typer.Option(help="A number, or 0x and hexadecimal digits.")],
    config: ConfigFile = None,
    settings: Settings = None,
    tape: Annotated[
        Path | None, file_option("Write a tape here: a file that replays the run.")
    ] = None,
    whole: Whole = False,
    failure: Failure = None,
    as_json: AsJson = False,
) -> None:
    """Run one seed, and print its settings, its digest, the verdict and the reason.

    Ends with status 1 unless the verdict is ok.
    """
    from ottla.sim.run import run as run_seed
    from ottla.sim.sweeps.tape_file import Case

    if whole or failure is not None:
        if tape is not None:
            raise UsageError(
                "--tape: a tape replays a run of a sweep, so it needs a run without --whole"
            )
        tell(whole_of(seed, config, settings, failure)[0], as_json=as_json)
    check_out(tape)
    number, given = seed_of(seed), config_of(config, settings)
    with busy(f"running seed {number}"):
        outcome = run_seed(number, given)
    if tape is not None:
        keep(tape, Case(outcome.config, outcome.tape))
    tell(outcome, as_json=as_json)


def replay(what: What, *, config: ConfigFile = None, settings: Settings = None) -> None:
    """Run a seed or a tape again. Ends with status 1 unless the verdict is ok.

    With a seed, give the settings of its sweep: under other settings, it is another run.
    """
    tell(outcome_of(what, config, settings))


def show(
    what: What,
    *,
    config: ConfigFile = None,
    settings: Settings = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    last: Annotated[int, typer.Option(min=1, help="Only the last events, this many.")] = 1_000_000,
    as_json: AsJson = False,
) -> None:
    """Print the history of a run, one event a line (`sim/history/history.py` says what the columns
    mean)."""
    from ottla.sim.history.compare import told
    from ottla.sim.history.history import KINDS

    for each in kind or ():
        if each not in KINDS:
            raise UsageError(f"no such kind: {each}; there are {', '.join(KINDS)}")
    outcome = outcome_of(what, config, settings)
    rows = [row for row in outcome.rows if not kind or row.kind in kind]
    for row in rows[-last:]:
        if as_json:
            say_object(row.told())
        else:
            say(f"{row.eid:6} {told(row)}")


def diff(
    left: What,
    right: Annotated[str, typer.Argument(help="Another one.")],
    *,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Print the first event at which two runs differ. Ends with status 1 if there is one.

    --config and --set apply to each side that is a seed.
    """
    from ottla.sim.history.compare import parting

    def side(what: str, other: str) -> Outcome:
        if taped(what) and not taped(other):
            return outcome_of(what)  # the settings are for the other side
        return outcome_of(what, config, settings)

    found = parting(side(left, right).rows, side(right, left).rows)
    say("the same history" if found is None else str(found))
    raise typer.Exit(0 if found is None else 1)


def shrink(
    what: What,
    *,
    config: ConfigFile = None,
    settings: Settings = None,
    out: Annotated[Path, file_option("Where the smaller tape goes.")] = Path("small.tape"),
    seconds: Annotated[float, typer.Option(min=1, help="How long to try.")] = 60.0,
) -> None:
    """Make a failed run smaller, so that it still has the same anomaly.

    If the command is interrupted, it keeps the smallest run so far.
    """
    from ottla.sim.chance.choices import Replayed
    from ottla.sim.run import replay as replay_tape
    from ottla.sim.sweeps.shrink import Shrinker
    from ottla.sim.sweeps.shrink_run import replayer
    from ottla.sim.sweeps.tape_file import Case

    if isnan(seconds):  # it passes the check of the minimum, and would never be over
        raise UsageError(f"--seconds {seconds}: is not a number; give a time in seconds")
    check_out(out)
    outcome = outcome_of(what, config, settings)
    if not outcome.anomalies:
        raise UsageError(f"{what}: nothing to shrink, {passed(outcome)}")
    line, until = Line(), monotonic() + seconds
    line.doing("replaying with fewer choices")

    def progress(replays: int, kept: int, best: Case) -> None:
        line.show(f"{replays} replays, {kept} kept, {len(best.tape)} choices left")

    whole = Case(outcome.config, outcome.tape)
    if out.is_file() or not out.exists():  # others, such as a pipe, are written only once
        keep(out, whole)  # so that a full disk is noticed now, not at the end
    shrinker = Shrinker(
        whole, replayer(outcome.anomalies[0]), lambda: monotonic() > until, progress
    )
    with interruptible(line, lambda: f"the smallest so far is kept: {out}"):
        try:
            shrinker.run()
        finally:
            line.end()
            best = shrinker.best.case
            keep(out, best)
            again = shlex.join(["ottla", "sim", "replay", str(out), *words_of_others()])
            say(f"{len(outcome.tape)} choices before, {len(best.tape)} now: {again}")
    with busy("replaying the smallest once more"):
        smallest = replay_tape(best.tape, best.config, Replayed)
    show_outcome(smallest)
