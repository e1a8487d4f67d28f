"""`ottla sim sweep` and `mutants`: many runs.

Each carries out a plan (seeds and settings) in as many processes as the user wants. Results are
printed as they come. Status 1 means that something was found.
"""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ottla.commands.sim.asking import (
    AsJson,
    ConfigFile,
    Jobs,
    Settings,
    check_faults,
    check_out,
    config_of,
    mutant_named,
    seed_of,
)
from ottla.commands.sim.blind import sweep_blind
from ottla.commands.sim.explaining import given, there, write
from ottla.commands.sim.interrupting import NOTHING, interruptible
from ottla.commands.sim.other_trees import words_of_others
from ottla.commands.sim.telling import Line, say, say_object
from ottla.commands.usage import UsageError, file_option, folder_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.sim.mutants.catalogue import Row
    from ottla.sim.sweeps.canary import Canary
    from ottla.sim.sweeps.kills import Kills
    from ottla.sim.sweeps.sweep_folder import SeedResult


def sweep(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="How many.")] = 1_000,
    first: Annotated[str, typer.Option(help="The first seed.")] = "0",
    jobs: Jobs = 1,
    config: ConfigFile = None,
    settings: Settings = None,
    out: Annotated[
        Path | None, folder_option("Folder for the results; a sweep in it is resumed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run many seeds and list those that fail. Ends with status 1 if any seed fails.

    The list also has seeds whose run was weakened: by a fault that Raft cannot survive, or because
    acks=0 and acks=1 promise less than acks=all. That is not a failure. Below each seed is the
    command that runs it again. First, the sweep runs two brokers with known bugs, the canary. If
    one of these bugs is not noticed, the sweep is void and ends there.
    """
    from ottla.sim.sweeps.sweep import VoidSweepError
    from ottla.sim.sweeps.sweep import sweep as run_sweep
    from ottla.sim.sweeps.sweep_folder import Plan, SweepError

    plan = Plan(seed_of(first), seeds, config_of(config, settings).told())
    seen = (_SeenByPrograms if as_json else _Seen)(seeds, given(config, settings))
    try:
        with interruptible(seen.line, lambda: seen.interrupted(kept=out is not None)):
            for result in run_sweep(plan, jobs, out, seen.canary, begins=seen.begins):
                seen.add(result)
    except VoidSweepError:
        raise typer.Exit(1) from None
    except SweepError as error:
        raise UsageError(str(error)) from None
    seen.end()
    raise typer.Exit(1 if seen.found["failed"] else 0)


class _Seen:
    """Prints the results and the progress of a sweep. Results from an earlier sweep in the same
    folder do not count for its speed."""

    def __init__(self, seeds: int, shared: list[str]) -> None:
        self._shared = shared
        self.line, self.found = Line(), Counter[str]()
        self.line.doing("running the canary, two mutants that have to be noticed")
        self._broken, self._unjudged = Counter[str](), Counter[str]()
        self._seeds, self._done, self._there = seeds, 0, 0
        self._begun: float | None = None

    def canary(self, found: Canary) -> None:
        """Print whether the mutants that run first were noticed."""
        self.line.over(str(found))

    def begins(self, there: int) -> None:
        """The first seed is about to run; `there` results come from an earlier sweep."""
        self._there, self._begun = there, monotonic()
        self.line.doing("running the first seeds")
        if there:
            self._show()

    def add(self, result: SeedResult) -> None:
        """One more result."""
        self._done += 1
        self.found[result.verdict] += 1
        self._tell(result)
        for each in result.unjudged.split(", ") if result.unjudged else ():
            count, _, name = each.partition(" of ")
            self._unjudged[name] += int(count)
        if result.verdict == "failed":
            self._broken[result.invariant or "the run itself"] += 1
        self._show()

    def _tell(self, result: SeedResult) -> None:
        if result.verdict != "ok":
            self.line.over(f"seed {result.seed} {result.verdict}: {result.reason}")
            self.line.over(f"  {self._again(result.seed)}")

    def end(self) -> None:
        """Print how many answers could not be judged, which invariants failed first, and in how
        many seeds. If no seed failed, print how rare a failure may be."""
        from ottla.sim.sweeps.bounds import bounded

        self._last_line()
        if self._unjudged:
            say(f"answers that could not be judged: {_by_name(self._unjudged)}")
        if self._broken:
            say(f"failed: {_by_name(self._broken)}")
        elif self._done:
            say(f"{bounded(self._done)} seeds fail")

    def interrupted(self, *, kept: bool) -> str:
        """The last line of a sweep that is ended early."""
        with suppress(OSError, UsageError):  # the reader may have been interrupted, too
            self._last_line()
        on = "the same command goes on" if kept else "with --out DIR the same command would go on"
        return f"{self._done} of {self._seeds} seeds are done, {on}"

    def _last_line(self) -> None:
        self.line.end()

    def _again(self, seed: int) -> str:
        """The command that runs a seed again: `run`, because `replay` would prefer a file of this
        name."""
        return shlex.join(["ottla", "sim", "run", "--seed", str(seed), *self._shared])

    def _show(self) -> None:
        told = f"{self._done} of {self._seeds} seeds, {_in_short(self.found)}"
        run = self._done - self._there
        if run and self._begun is not None:
            told += f", {run / max(monotonic() - self._begun, 1e-9):.1f} seeds/s"
        if self._there:
            told += f", {self._there} were there already"
        self.line.show(told)


class _SeenByPrograms(_Seen):
    """The same as JSON, one object a line: the canary, each seed, and the totals."""

    def canary(self, found: Canary) -> None:
        """See `_Seen`."""
        say_object({"canary": found._asdict()})

    def _tell(self, result: SeedResult) -> None:
        say_object({**result._asdict(), "again": self._again(result.seed)})

    def end(self) -> None:
        """See `_Seen`."""
        from ottla.sim.sweeps.bounds import upper_bound

        self._last_line()
        counts = {each: self.found[each] for each in ("ok", "failed", "weakened")}
        say_object(
            {
                "seeds": self._done,
                **counts,
                "failed_share_at_most": upper_bound(self.found["failed"], self._done),
                "invariants": dict(self._broken),
                "unjudged": dict(self._unjudged),
            }
        )

    def _last_line(self) -> None:
        self.line.clear()


def _by_name(found: Counter[str]) -> str:
    most = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{times} of {name}" for name, times in most)


def _in_short(found: Counter[str]) -> str:
    weakened = f", {found['weakened']} weakened" if found["weakened"] else ""
    return f"{found['failed']} failed{weakened}"


def mutants(
    only: Annotated[
        list[str] | None, typer.Argument(help="Ids, such as M07; by default all.")
    ] = None,
    *,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="For each mutant; by default 500, with --blind 300.")
    ] = None,
    first: Annotated[
        str | None, typer.Option(help="The first seed; by default 0, with --blind 3000000.")
    ] = None,
    jobs: Jobs = 1,
    page: Annotated[
        Path | None,
        file_option("Write the matrix here, as Markdown; rows of other mutants in this file stay."),
    ] = None,
    blind: Annotated[
        bool,
        typer.Option("--blind", help="Sweep under plain settings, and planted mutants as well."),
    ] = False,
    table: Annotated[
        Path | None, file_option("Planted mutants to sweep instead of all others; with --blind.")
    ] = None,
    to_the_end: Annotated[
        bool,
        typer.Option("--to-the-end", help="With --blind: go on after the first seed that fails."),
    ] = False,
) -> None:
    """Switch off one safety mechanism at a time, and see which seeds and scenarios notice.

    With a plugin that has mutants, these are swept by default.

    A broker without one mechanism is a mutant. Each mutant runs under settings in which its
    mechanism matters. Below its figures is the command that runs the first seed that failed. If
    none failed, it is the command that sweeps the seeds. Ends with status 1 if no seed, or no
    scenario, notices a mutant.

    With --blind, each mutant is swept as `sweep` sweeps the broker, up to the first seed that
    fails. Bugs that other people planted are swept, too. Then the status is 1 if a mutant survives
    that has no excuse.
    """
    for word, given_too in (("--blind", blind), ("--page", page is not None)):
        if given_too and _plugins():
            raise UsageError(f"{word} is for what comes with Ottla; leave it out, or --plugin")
    if blind:
        sweep_blind(only or (), (seeds, first), jobs, table=table, to_the_end=to_the_end, page=page)
    for word, given_too in (("--table", table is not None), ("--to-the-end", to_the_end)):
        if given_too:
            raise UsageError(f"{word} is for blind sweeps; say --blind, or leave it out")
    _matrix(only or (), seeds or 500, seed_of(first or "0"), jobs, page)


def _matrix(only: Sequence[str], seeds: int, start: int, jobs: int, page: Path | None) -> NoReturn:
    """Sweep the mutants under their own settings, and print the matrix of kills."""
    from ottla.sim.mutants.catalogue import BY_ID
    from ottla.sim.sweeps import mutants_page as report
    from ottla.sim.sweeps.blind_page import split
    from ottla.sim.sweeps.kills import matrix

    plugins = _plugins()
    own = _mutants_of(plugins)
    asked = [mutant_named(each, BY_ID | own) for each in only or own or BY_ID]
    check_out(page)
    _check_page(page)
    ids, line, by = list(dict.fromkeys(asked)), Line(), report.scenarios()
    all_found: list[Kills] = []
    begun = monotonic()

    def told(done: int) -> None:
        rate = done / max(monotonic() - begun, 1e-9)
        line.show(
            f"{done // seeds} of {len(ids)} mutants, {done} of {len(ids) * seeds} seeds, "
            f"{rate:.1f} seeds/s"
        )

    line.doing("running the first seeds")
    with interruptible(line, lambda: _interrupted(len(all_found), len(ids), page)):
        for found in matrix(ids, range(start, start + seeds), jobs, told, plugins=plugins):
            for each in _told_of(found, by.get(found.row.id, ["no scenario"])):
                line.over(each)
            if page is not None:  # row by row: a matrix takes an hour, and may be ended early
                told_part, blind_part = split(there(page))
                rows = report.page(report.merged([found], told_part))
                write(page, rows + (blind_part and f"\n{blind_part}"))
            all_found.append(found)
    line.end()
    say(report.over_all(all_found))
    survived = any(
        not each.killed or each.row.id not in (*by, *own)  # nobody asks for scenarios of the latter
        for each in all_found
    )
    raise typer.Exit(1 if survived else 0)


def _plugins() -> str:
    from ottla.sim.plugins.files import setting

    return setting()


def _mutants_of(plugins: str) -> dict[str, Row]:
    """The mutants of plugins, by id. Raises `UsageError` for settings that make no sense."""
    from ottla.broker.errors import ConfigError
    from ottla.sim.mutants.catalogue import of_plugins
    from ottla.sim.sweeps.kills import settings_of

    own = of_plugins(plugins)
    for each in own.values():
        try:
            check_faults(settings_of(each, plugins))
        except ConfigError as error:
            raise UsageError(f"--plugin: the settings of {each.id}: {error}") from None
    return own


def _told_of(found: Kills, scenarios: Sequence[str]) -> Iterator[str]:
    """The result of a mutant, in a few lines: its figures, the command that shows it, and the
    simulator's own errors."""
    from ottla.sim.sweeps import mutants_page as report

    in_scenarios = f"in {' '.join(scenarios)}; " if found.row.mutant else ""
    yield (
        f"{found.row.id}  {f'{found.killed} of {found.seeds}':>11} failed  "
        f"{report.span(found)} seeds to kill; {report.noticed(found)}; "
        f"{in_scenarios}without {found.row.lacks}"
    )
    command = report.failing_by(found) or report.swept_by(found)
    yield f"     {' '.join((command, *map(shlex.quote, words_of_others())))}"
    if found.broke:
        yield (
            f"     {len(found.broke)} broke by themselves, a bug of the simulator, and are not "
            f"counted as failed; the first is seed {found.broke[0]}"
        )


def _interrupted(done: int, asked: int, page: Path | None) -> str:
    if page is None:
        kept = f"{NOTHING}; with --page FILE their rows would be"
    else:
        kept = f"their rows are kept: {page}" if done else NOTHING
    return f"{done} of {asked} mutants are done, {kept}"


def _check_page(path: Path | None) -> None:
    """Raises `UsageError` for a page whose text would be lost."""
    from ottla.sim.sweeps.blind_page import split
    from ottla.sim.sweeps.mutants_page import NotAPageError, check

    if path is None:
        return
    try:
        check(split(there(path))[0])
    except NotAPageError as error:
        raise UsageError(f"--page {path}: {error}; name another file, or mend it") from None
