"""`ottla sim mutants --blind`: which mutants does a plain sweep notice, without any hint?

Each mutant gets a line when it is done, with the command that shows the anomaly again. At the end
come the mutants that survived, with what would show them. Status 1: one survived without an excuse.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import typer

from ottla.commands.sim.asking import check_out, seed_of, toml_text
from ottla.commands.sim.explaining import there, write
from ottla.commands.sim.interrupting import NOTHING, interruptible
from ottla.commands.sim.other_trees import words_of_others
from ottla.commands.sim.telling import Line, say
from ottla.commands.usage import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ottla.sim.mutants.planted import Planted
    from ottla.sim.sweeps.blind import BlindKills, Target


class Asked(NamedTuple):
    """The arguments of a blind sweep."""

    only: Sequence[str]
    """Ids; empty: all."""
    table: Path | None
    """A file of planted mutants, swept instead of all others."""
    seeds: range
    jobs: int
    to_the_end: bool


def sweep_blind(
    only: Sequence[str],
    range_: tuple[int | None, str | None],
    jobs: int,
    *,
    table: Path | None,
    to_the_end: bool,
    page: Path | None,
) -> NoReturn:
    """Carry out `mutants --blind`, and end the command. `range_`: the number of seeds and the first
    one, as they were typed; None if not typed. Raises `UsageError`."""
    from ottla.sim.mutants.planted import PlantedError
    from ottla.sim.sweeps.blind import FIRST, SEEDS, Sweep

    count, first = range_
    start = FIRST if first is None else seed_of(first)
    asked = Asked(only, table, range(start, start + (count or SEEDS)), jobs, to_the_end)
    targets = {each.id: each for each in _targets(asked)}
    check_out(page)
    if page is not None and table is not None:
        raise UsageError("--page keeps the mutants that come with Ottla, not those of --table")
    kept = _Kept(page)
    seen = _Seen(len(targets), asked)
    found: list[BlindKills] = []
    try:
        with interruptible(seen.line, lambda: _interrupted(len(found), len(targets), page)):
            seen.line.doing("running the first seeds")
            sweep = Sweep(asked.seeds, to_the_end=to_the_end, told=seen.seeds)
            for each in sweep.kills([*targets.values()], jobs):
                found.append(each)
                seen.mutant(targets[each.id], each)
                kept.keep(each)
    except PlantedError as error:
        raise UsageError(str(error)) from None
    seen.end(targets, found)
    survived = any(not each.killed and not targets[each.id].excuse for each in found)
    raise typer.Exit(1 if survived else 0)


def _interrupted(done: int, asked: int, page: Path | None) -> str:
    kept = NOTHING if page is None or not done else f"their rows are kept: {page}"
    return f"{done} of {asked} mutants are done, {kept}"


class _Kept:
    """The page that gets the rows, each as soon as it is known: a sweep is long, and may be ended
    early."""

    def __init__(self, page: Path | None):
        """Raises `UsageError` for a page whose text would be lost."""
        self._page = page
        if page is not None:
            self.keep(None)

    def keep(self, found: BlindKills | None) -> None:
        """Write one more row; None only checks the page. Raises `UsageError`."""
        from ottla.sim.mutants.catalogue import CATALOGUE
        from ottla.sim.mutants.planted import shipped
        from ottla.sim.sweeps.blind import of_a_table, of_the_catalogue
        from ottla.sim.sweeps.blind_page import NotBlindError, merged, section, split

        if self._page is None:
            return
        targets = [*map(of_the_catalogue, CATALOGUE), *map(of_a_table, shipped())]
        by_id = {each.id: each for each in targets}
        told, blind = split(there(self._page))
        try:
            rows = merged([] if found is None else [found], blind, by_id)
        except NotBlindError as error:
            raise UsageError(f"--page {self._page}: {error}; name another file") from None
        if found is not None:
            write(self._page, f"{told}\n{section(rows, by_id)}")


def _targets(asked: Asked) -> list[Target]:
    """The mutants to sweep. Raises `UsageError`."""
    from ottla.sim.mutants.catalogue import CATALOGUE
    from ottla.sim.settings.told import mutant_id
    from ottla.sim.sweeps.blind import of_a_table, of_the_catalogue

    there = [of_a_table(each) for each in planted_in(asked.table)]
    if asked.table is None:
        there = [*map(of_the_catalogue, CATALOGUE), *there]
    if not asked.only:
        return there
    by_id = {each.id.lower(): each for each in there}
    found = []
    for each in dict.fromkeys(mutant_id(each).lower() for each in asked.only):
        if each not in by_id:
            raise UsageError(f"no such mutant: {each}; there are {', '.join(by_id).upper()}")
        found.append(by_id[each])
    return found


def planted_in(table: Path | None) -> Sequence[Planted]:
    """The planted mutants of a file, or those that come with Ottla. Raises `UsageError`."""
    from ottla.sim.mutants.planted import PlantedError, read, shipped

    if table is None:
        return shipped()
    text = toml_text("--table", table)
    try:
        return read(text)
    except PlantedError as error:
        raise UsageError(f"--table {table}: {error}") from None


class _Seen:
    """Prints the results and the progress of a blind sweep."""

    def __init__(self, mutants: int, asked: Asked):
        self.line = Line()
        self._mutants, self._asked = mutants, asked
        self._lock, self._seeds = Lock(), 0
        self._done, self._killed, self._begun = 0, 0, monotonic()

    def seeds(self, done: int) -> None:
        """`done` seeds were run, of all mutants together. Called from any thread."""
        with self._lock:
            self._seeds = max(self._seeds, done)
        self._show()

    def mutant(self, target: Target, found: BlindKills) -> None:
        """One more mutant is done."""
        self._done += 1
        self._killed += bool(found.killed)
        for each in self._told(target, found):
            self.line.over(each)
        self._show()

    def end(self, targets: dict[str, Target], found: Sequence[BlindKills]) -> None:
        """Print the mutants that survived, and the totals."""
        self.line.clear()
        alive = [targets[each.id] for each in found if not each.killed]
        for text, excused in (("survived", False), ("survived, excused", True)):
            for each in alive:
                if bool(each.excuse) is excused:
                    say(f"{text}: {each.id}  {each.room}: {each.breaks}")
                    say(f"     {each.excuse or each.shows}")
        excused_ones = sum(bool(each.excuse) for each in alive)
        say(
            f"{self._killed} of {len(found)} mutants died within {len(self._asked.seeds)} plain "
            f"seeds from {self._asked.seeds.start}, {len(alive) - excused_ones} survived, "
            f"{excused_ones} survived with an excuse; {self._seeds} seeds, "
            f"{sum(each.cpu_s for each in found):.0f} CPU s, {monotonic() - self._begun:.0f} s"
        )

    def _show(self) -> None:
        rate = self._seeds / max(monotonic() - self._begun, 1e-9)
        self.line.show(
            f"{self._done} of {self._mutants} mutants, {self._killed} died, "
            f"{self._seeds} seeds, {rate:.1f} seeds/s"
        )

    def _told(self, target: Target, found: BlindKills) -> Iterator[str]:
        """The result of a mutant, in a few lines."""
        from ottla.sim.sweeps.blind_page import noticed, when

        yield (
            f"{found.id}  {target.room:<11}  {when(found)}; {noticed(found)}; "
            f"{found.cpu_s:.1f} CPU s"
        )
        if found.failing is not None:
            yield f"     {found.reason[:200]}"
            yield f"     {self._again(target, found.failing)}"
        if found.killed and target.excuse:
            yield f"     it died, so it needs no excuse any more: {target.excuse}"
        if found.without:
            yield (
                f"     {len(found.without)} seeds fail without it as well and do not count; the "
                f"first is {found.without[0]}"
            )

    def _again(self, target: Target, seed: int) -> str:
        """The command that runs this seed alone, for a planted mutant in a changed copy again."""
        if target.planted is None:
            words = ["run", "--seed", str(seed), "--set", f"mutants={target.id}"]
        else:
            words = ["mutants", target.id, "--blind", "--seeds", "1", "--first", str(seed)]
            if self._asked.table is not None:
                words += ["--table", str(self._asked.table)]
        return shlex.join(["ottla", "sim", *words, *words_of_others()])
