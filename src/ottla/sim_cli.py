"""`ottla sim`: runs, sweeps and what helps to understand them, from the command line.

Everything here is telling and asking; what is done is done in `ottla.sim`. A seed is a number or
`0x…`; settings come from a TOML file and from `--set NAME=VALUE`, the later ones win.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ottla.sim.run import Outcome
    from ottla.sim.settings import RunConfig
    from ottla.sim.sweep import SeedResult
    from ottla.sim.tape_file import Case

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="The simulator: one seed, one history.",
)

Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="One setting; repeatable.")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="Settings as TOML.")]
JOBS = 1


class SimUsageError(typer.TyperException):
    """The user can do something about it; the text is one line that says what."""


@app.command()
def run(
    *,
    seed: Annotated[str, typer.Option(help="A number, or 0x and hexadecimal digits.")],
    config: ConfigFile = None,
    settings: Settings = None,
    tape: Annotated[Path | None, typer.Option(help="Keep what replays the run here.")] = None,
) -> None:
    """One run: what it was, its digest, the verdict and one line of reason.

    Ends with status 1 unless the verdict is ok.
    """
    from ottla.sim.run import run as run_seed
    from ottla.sim.tape_file import Case

    outcome = run_seed(_seed(seed), _config(config, settings))
    if tape is not None:
        _keep(tape, Case(outcome.config, outcome.tape))
    _tell(outcome)


@app.command()
def replay(what: Annotated[str, typer.Argument(help="A seed, or a file with a tape.")]) -> None:
    """A run once more, from its seed or its tape."""
    _tell(_again(what))


@app.command()
def show(
    what: Annotated[str, typer.Argument(help="A seed, or a file with a tape.")],
    *,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    last: Annotated[int, typer.Option(min=1, help="Only so many, the last ones.")] = 1_000_000,
) -> None:
    """The history of a run, one event a line (`sim/history.py` says what the columns mean)."""
    from ottla.sim.compare import told
    from ottla.sim.history import KINDS

    for each in kind or ():
        if each not in KINDS:
            raise SimUsageError(f"no such kind: {each}; there are {', '.join(KINDS)}")
    rows = [row for row in _again(what).rows if not kind or row.kind in kind]
    for row in rows[-last:]:
        _say(f"{row.eid:6} {told(row)}")


@app.command()
def diff(
    left: Annotated[str, typer.Argument(help="A seed, or a file with a tape.")],
    right: Annotated[str, typer.Argument(help="Another one.")],
) -> None:
    """The first event at which two runs differ. Ends with status 1 if there is one."""
    from ottla.sim.compare import parting

    found = parting(_again(left).rows, _again(right).rows)
    _say("the same history" if found is None else str(found))
    raise typer.Exit(0 if found is None else 1)


@app.command()
def sweep(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="How many.")] = 1_000,
    first: Annotated[str, typer.Option(help="The first seed.")] = "0",
    jobs: Annotated[int, typer.Option(min=1, max=1024, help="Processes.")] = JOBS,
    config: ConfigFile = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; a sweep there is resumed.")
    ] = None,
) -> None:
    """Many seeds; those that fail are listed as they come. Ends with status 1 if any does."""
    from ottla.sim.sweep import Plan, SweepError
    from ottla.sim.sweep import sweep as run_sweep

    plan = Plan(_seed(first), seeds, _config(config, settings).told())
    line, failed, begun = _Line(), 0, monotonic()
    try:
        for done, result in enumerate(run_sweep(plan, jobs, out), 1):
            if result.verdict != "ok":
                failed += 1
                line.over(_failure(result))
            rate = done / max(monotonic() - begun, 1e-9)
            line.show(f"{done} of {seeds} seeds, {failed} failed, {rate:.1f} seeds/s")
    except SweepError as error:
        raise SimUsageError(str(error)) from None
    line.end()
    raise typer.Exit(1 if failed else 0)


@app.command()
def shrink(
    what: Annotated[str, typer.Argument(help="A seed, or a file with a tape.")],
    *,
    out: Annotated[Path, typer.Option(help="Where the smaller tape goes.")] = Path("small.tape"),
    seconds: Annotated[float, typer.Option(min=1, help="How long to try.")] = 60.0,
) -> None:
    """The same anomaly with as few choices as possible."""
    from ottla.sim.shrink import Shrinker
    from ottla.sim.shrink_run import replayer
    from ottla.sim.tape_file import Case

    outcome = _again(what)
    if not outcome.anomalies:
        raise SimUsageError(f"{what}: nothing to shrink, the verdict is {outcome.verdict.value}")
    line, until = _Line(), monotonic() + seconds

    def progress(replays: int, kept: int, best: Case) -> None:
        line.show(f"{replays} replays, {kept} kept, {len(best.tape)} choices left")

    shrinker = Shrinker(
        Case(outcome.config, outcome.tape),
        replayer(outcome.anomalies[0].invariant),
        lambda: monotonic() > until,
        progress,
    )
    best = shrinker.run()
    line.end()
    _keep(out, best)
    _say(f"{len(outcome.tape)} choices before, {len(best.tape)} now: ottla sim replay {out}")
    _tell(_again(str(out)))


@app.command()
def meta(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="How many.")] = 1_000,
    first: Annotated[str, typer.Option(help="The first seed.")] = "0",
    config: ConfigFile = None,
    settings: Settings = None,
    python: Annotated[
        list[str] | None,
        typer.Option(help="Another interpreter that has Ottla; repeatable."),
    ] = None,
) -> None:
    """One seed, one history? Every seed in several processes. Ends with status 1 if not."""
    from ottla.sim.meta import check, variants

    settings_text = _config(config, settings).told()
    wrong = 0
    for variant, mismatches in check(_seed(first), seeds, settings_text, variants(python or [])):
        _say(f"{variant.name}: {seeds} seeds, {len(mismatches)} mismatches")
        for each in mismatches:
            _say(f"  seed {each.seed}: {each.text}")
        wrong += len(mismatches)
    raise typer.Exit(1 if wrong else 0)


@app.command()
def mutants(
    only: Annotated[list[str] | None, typer.Argument(help="Ids, such as M07; all without.")] = None,
    *,
    seeds: Annotated[int, typer.Option(min=1, help="For each mutant.")] = 500,
    jobs: Annotated[int, typer.Option(min=1, max=1024, help="Processes.")] = JOBS,
) -> None:
    """Which switched-off safety mechanism is missed, how soon, and by which invariant.

    Ends with status 1 if one is not missed at all.
    """
    from ottla.sim.mutants.catalogue import BY_ID
    from ottla.sim.mutants.matrix import matrix

    for each in only or ():
        if each not in BY_ID:
            raise SimUsageError(f"no such mutant: {each}; there are {', '.join(BY_ID)}")
    _say(f"{'id':4} {'killed':>10} {'seeds to kill':>14}  by, lacks")
    survivors = 0
    for found in matrix(only or list(BY_ID), seeds, jobs):
        to_kill = found.seeds_to_kill
        survivors += to_kill is None
        by = " ".join(f"{name}:{count}" for name, count in found.invariants) or "nobody"
        _say(
            f"{found.row.id:4} {f'{found.killed}/{seeds}':>10} "
            f"{'-' if to_kill is None else f'{to_kill:.1f}':>14}  {by}; {found.row.lacks}"
        )
    raise typer.Exit(1 if survivors else 0)


# --- asking -----------------------------------------------------------------------------------


def _seed(text: str) -> int:
    try:
        seed = int(text, 0)
    except ValueError:
        raise SimUsageError(f"{text!r} is no seed; write a number, or 0x and digits") from None
    if seed < 0:
        raise SimUsageError(f"{text!r} is no seed; seeds are not negative")
    return seed


def _config(path: Path | None, settings: list[str] | None) -> RunConfig:
    from ottla.broker.errors import ConfigError
    from ottla.sim.settings import from_toml

    try:
        text = "" if path is None else path.read_text()
        given = from_toml(text)
        for each in settings or ():
            name, equals, value = each.partition("=")
            if not equals:
                raise SimUsageError(f"--set {each}: write NAME=VALUE")
            given = given.with_(**{name: _value(value)})
    except OSError as error:
        raise SimUsageError(f"--config {path}: {error.strerror}") from None
    except ConfigError as error:
        raise SimUsageError(str(error)) from None
    return given


def _value(text: str) -> int | str | bool:
    if text in {"true", "false"}:
        return text == "true"
    try:
        return int(text, 0)
    except ValueError:
        return text


def _again(what: str) -> Outcome:
    """The run of a seed, or of a tape in a file."""
    from ottla.sim.choices import Replayed
    from ottla.sim.run import replay as replay_tape
    from ottla.sim.run import run as run_seed
    from ottla.sim.tape_file import TapeError, read

    path = Path(what)
    if not path.exists():
        return run_seed(_seed(what))
    try:
        case = read(path)
    except (TapeError, OSError) as error:
        raise SimUsageError(f"{what}: {error}") from None
    return replay_tape(case.tape, case.config, Replayed)


def _keep(path: Path, case: Case) -> None:
    from ottla.sim.tape_file import write

    try:
        write(path, case)
    except OSError as error:
        raise SimUsageError(f"{path}: {error.strerror}") from None


# --- telling ----------------------------------------------------------------------------------


def _tell(outcome: Outcome) -> None:
    config = outcome.config.told() or "all settings at their defaults"
    _say(f"config {outcome.config.name}")
    for line in config.splitlines():
        _say(f"  {line}")
    _say(
        f"digest {outcome.digest} after {outcome.simulated / 1e6:.3f} s, {outcome.steps} steps, "
        f"{len(outcome.rows)} events, {len(outcome.tape)} choices"
    )
    _say(f"{outcome.verdict.value}: {outcome.reason}")
    raise typer.Exit(0 if outcome.verdict.value == "ok" else 1)


def _failure(result: SeedResult) -> str:
    return f"seed {result.seed} {result.verdict}: {result.reason}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class _Line:
    """One line of progress on a terminal; elsewhere its last state, once."""

    def __init__(self) -> None:
        self._terminal: Any = sys.stderr if sys.stderr.isatty() else None
        self._last = ""

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._terminal is not None:
            pad = " " * max(0, len(self._last) - len(text))
            self._terminal.write(f"\r{text}{pad}")
            self._terminal.flush()
        self._last = text

    def over(self, text: str) -> None:
        """Say something that stays, above the line."""
        if self._terminal is not None:
            self._terminal.write("\r" + " " * len(self._last) + "\r")
        _say(text)

    def end(self) -> None:
        """Leave the line as it is."""
        if self._terminal is not None:
            self._terminal.write("\n")
        else:
            _say(self._last)
