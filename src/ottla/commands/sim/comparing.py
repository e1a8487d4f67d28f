"""`ottla sim meta`: is one seed one history, in every process and on every CPython?

Its last line says which CPythons took part and which did not. A run that compared only one CPython
with itself shows less than one that compared several.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ottla.commands.sim.asking import ConfigFile, Jobs, Settings, config_of, seed_of
from ottla.commands.sim.interrupting import NOTHING, interruptible
from ottla.commands.sim.telling import Line, say
from ottla.commands.usage import UsageError

if TYPE_CHECKING:
    from ottla.sim.machine.pythons import Found
    from ottla.sim.settings.settings import RunConfig


_VERSION = re.compile(r"3\.\d+")
Warm = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Seeds that one of the processes runs before the comparison; by default as many as "
        "--seeds, at most 1000.",
    ),
]
Named = Annotated[
    list[str] | None,
    typer.Option(
        help="Path of another Python with Ottla's libraries; repeatable. By default, every other "
        "CPython that is found."
    ),
]
Required = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VERSION",
        help="Run only if this CPython, such as 3.12, takes part; repeatable.",
    ),
]


def meta(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="How many.")] = 1_000,
    first: Annotated[str, typer.Option(help="The first seed.")] = "0",
    jobs: Jobs = 1,
    config: ConfigFile = None,
    settings: Settings = None,
    warm: Warm = None,
    drivers: Annotated[
        int, typer.Option(min=0, help="How many seeds are also played under both drivers.")
    ] = 20,
    python: Named = None,
    require_python: Required = None,
) -> None:
    """Check that one seed is one history: run each seed in several processes. Ends with status 1 if
    two runs of a seed differ.

    The first seeds are also recorded, turn by turn, and played to fresh replicas under both
    drivers, the event kernel and the deterministic loop. Both must end with the same logs. The last
    line says which CPythons took part, and which did not.
    """
    from ottla.sim.machine.pythons import InterpreterError
    from ottla.sim.sweeps.meta import Plan, check, variants

    told = config_of(config, settings)
    plan = Plan(seed_of(first), seeds, told.told())
    line, wrong = Line(), 0
    line.doing("looking for other interpreters and starting them")
    with interruptible(line, lambda: f"0 of {seeds} seeds are done, {NOTHING}"):
        others = _found(line) if python is None else _named(python)
    others.require(require_python or ())
    ways = variants(others.paths, min(seeds, 1_000) if warm is None else warm)
    done = _Done(line, seeds * len(ways), min(seeds, drivers))
    try:
        with interruptible(line, done.told):
            for variant, mismatches in check(plan, ways, jobs=jobs, progress=done.one_run):
                line.over(f"{variant.name}: {seeds} seeds, {len(mismatches)} mismatches")
                for each in mismatches:
                    line.over(f"  seed {each.seed}: {each.text}")
                wrong += len(mismatches)
            wrong += _drivers_differ(line, done, plan.first, told)
    except InterpreterError as error:
        raise UsageError(str(error)) from None
    if not wrong:
        from ottla.sim.sweeps.bounds import bounded

        say(f"{bounded(seeds)} seeds differ between two runs")
    say(others.told())
    raise typer.Exit(1 if wrong else 0)


class _Done:
    """What is done so far, for the line of progress."""

    def __init__(self, line: Line, runs: int, seeds: int) -> None:
        self.seeds = seeds
        """How many seeds are played under both drivers."""
        self._line, self._all_runs, self._begun = line, runs, monotonic()
        self._lock, self._runs, self._played = Lock(), 0, 0

    def one_run(self) -> None:
        """One more run is over; called from any thread."""
        with self._lock:
            self._runs += 1
            rate = self._runs / max(monotonic() - self._begun, 1e-9)
            self._line.show(f"{self._runs} of {self._all_runs} runs, {rate:.1f} a second")

    def playing(self, number: int, seed: int) -> None:
        """`number` seeds have been played under both drivers; `seed` is next."""
        self._played = number
        self._line.show(f"both drivers: seed {seed}")

    def told(self) -> str:
        """What is done, for the line that an interrupted command prints."""
        runs = f"{self._runs} of {self._all_runs} runs"
        drivers = f" and {self._played} of {self.seeds} seeds under both drivers"
        return f"{runs}{drivers if self.seeds else ''} are done, {NOTHING}"


class Others(NamedTuple):
    """The CPythons other than the one that runs this command."""

    paths: list[str]
    """Paths of those that take part."""
    versions: list[str]
    """Their versions, such as 3.12. For a program that is not a CPython, its path."""
    left_out: dict[str, Found]
    """Those that lack libraries and do not take part, by version."""
    found: bool
    """True if the command looked for them, False if the user named them."""

    def require(self, versions: Sequence[str]) -> None:
        """Raises `UsageError` unless each of these takes part."""
        from ottla.sim.machine.pythons import mine

        for each in versions:
            if not _VERSION.fullmatch(each):
                raise UsageError(f"--require-python {each}: write a version such as {mine()}")
            if each in self.left_out:
                lacking = self.left_out[each]
                raise UsageError(
                    f"CPython {each} cannot take part, {lacking.lacks}; {_give(lacking)}"
                )
            if each not in {mine(), *self.versions}:
                raise UsageError(
                    f"CPython {each} does not take part; --python names the path of one"
                )

    def told(self) -> str:
        """The CPythons that took part and those that did not, in one line."""
        from ottla.sim.machine.pythons import mine

        versions = ", ".join(dict.fromkeys([mine(), *self.versions]))
        if self.left_out:
            return f"compared: CPython {versions}; not compared: {', '.join(self.left_out)}"
        alone = (
            ""
            if self.versions
            else " with itself; no other was " + ("found" if self.found else "named")
        )
        return f"compared: CPython {versions}{alone}"


def _named(paths: list[str]) -> Others:
    from ottla.sim.machine.pythons import tried
    from ottla.sim.sweeps.meta import ABLE

    return Others(paths, [tried(each, ABLE)[0] or each for each in paths], {}, found=False)


def _found(line: Line) -> Others:
    """Find CPythons of other versions, and print which of them lack the libraries."""
    from ottla.sim.machine.pythons import mine, pythons
    from ottla.sim.sweeps.meta import ABLE

    others = {minor: each for minor, each in pythons(ABLE).items() if minor != mine()}
    able = {minor: each.path for minor, each in others.items() if not each.lacks}
    left_out = {minor: each for minor, each in others.items() if each.lacks}
    for minor, each in left_out.items():
        line.over(f"CPython {minor} is left out, {each.lacks}")
    if left_out:
        line.over(_give(next(iter(left_out.values()))))
    return Others([*able.values()], [*able], left_out, found=True)


def _give(lacking: Found) -> str:
    """How to give a CPython the libraries that it lacks."""
    from ottla.sim.sweeps.meta import LIBRARIES

    return (
        f"{lacking.path} -m pip install {' '.join(LIBRARIES)} gives it the libraries, as would an "
        "environment made of it, whose path --python names"
    )


def _drivers_differ(line: Line, done: _Done, first: int, config: RunConfig) -> int:
    """For how many seeds the turns have another result under the other driver."""
    from ottla.sim.asyncio_runs.drivers.player import difference

    wrong = 0
    for number in range(done.seeds):
        seed = first + number
        done.playing(number, seed)
        differs = difference(seed, config)
        if differs is not None:
            line.over(f"  seed {seed}: {differs}")
            wrong += 1
    if done.seeds:
        line.over(f"both drivers: {done.seeds} seeds, {wrong} mismatches")
    line.clear()
    return wrong
