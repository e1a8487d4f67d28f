"""The pipeline: sweep, silver, judge, agree, gold; each stage goes on where it was stopped.

    sweep    the canary, then runs -> bronze, wave by wave
    silver   bronze -> silver, in batches of waves
    judge    bronze of judged runs -> SQL verdicts, in batches of waves
    agree    do SQL, Python and the runs themselves agree?
    gold     silver of all batches -> gold

Existing folders are not made again, so repeating a finished study costs nothing. The exception is a
folder made of a wave that was made again since, with other rows. Only what gold and the report need
is collected here: memory does not grow with the number of runs.

The canary (`ottla.sim.sweeps.canary`) is run again whenever there are runs to do, because it is
about the code and the machine that run them. If it is not noticed, no run is done and no later
stage begins.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from ottla.sim.studies import names
from ottla.sim.studies.bronze import Work
from ottla.sim.studies.engine import Engine
from ottla.sim.studies.events import define_events
from ottla.sim.studies.judging import differences_told, judge_waves
from ottla.sim.studies.lake import SUCCESS, Lake, cost, made, made_of, making, mark
from ottla.sim.studies.order import in_order
from ottla.sim.studies.pairs import PAIRS, pairs_query
from ottla.sim.studies.sheets import JUDGING, QUANTILES, sheet, sheets
from ottla.sim.studies.study import DisagreementError, VoidStudyError
from ottla.sim.studies.variants import variants_columns

STAGES = ("sweep", "silver", "judge", "agree", "gold")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a stage."""

    stage: str
    done: int
    """How much is done: runs of a sweep, the one check of agree, otherwise folders."""
    of: int
    rows: int
    """Rows of the runs, or the folders, that are done, including those before a resume."""
    seconds: float
    """Seconds since this command began the stage or went on with it."""
    fresh: int
    """How much of `done` this command did."""
    variants: int
    """Runs per seed."""


class Pipeline:
    """A study at work. `told` is called with every step; `said` with one line about the canary, and
    about files that have changed."""

    def __init__(
        self,
        lake: Lake,
        engine: Engine,
        told: Callable[[Progress], None],
        said: Callable[[str], None] = lambda _: None,
    ):
        self.lake = lake
        self._say = said
        self.plan = lake.plan
        self.study = lake.plan.parsed
        self.engine = engine
        self._told = told
        self._waves = tuple(enumerate(self.plan.waves()))

    def run(self) -> None:
        """Do what is left to do. Raises `StudyError`."""
        self.lake.spent()  # an unreadable bill is refused before anything is done
        self._sweep()
        self._silver()
        self._judge()
        self._agree()
        self._gold()

    def _whole(self, folder: Path) -> bool:
        """Whether it is there, with unchanged files."""
        whole = made(folder) is not None
        if not whole and (folder / SUCCESS).exists():
            name = folder.relative_to(self.lake.root)
            self._say(f"{name}: it does not match its {SUCCESS}; it is made again")
        return whole

    def _stage(self, name: str, of: int) -> _Stage:
        variants = len(self.study.variants)
        begun = Progress(name, 0, of, rows=0, seconds=0.0, fresh=0, variants=variants)
        return _Stage(begun, self._told, partial(self.lake.spend, name))

    def _sweep(self) -> None:
        plan = self.plan
        work = Work(plan.study, plan.first, plan.share)
        stage = self._stage("sweep", plan.runs)
        self.lake.end_before(self.lake.bronze(len(self._waves)))
        todo = {n for n, _ in self._waves if not self._whole(self.lake.bronze(n))}
        self._see_the_canary(anew=bool(todo))
        for number, runs in self._waves:
            folder = self.lake.bronze(number)
            if number in todo:
                self.engine.simulate(work, runs, folder, stage.step)
                stage.wrote(folder)
            else:
                stage.found(folder, len(runs))

    def _see_the_canary(self, *, anew: bool) -> None:
        """Raises `VoidStudyError` if it is not noticed. Not `anew`: it is run only if no good
        result of it is stored."""
        found = self.lake.canary()
        if not anew and found is not None and found.noticed:
            self._say(f"{found}, as kept with the runs")
            return
        found = self.engine.canary()
        self.lake.keep_canary(found)
        if not found.noticed:
            raise VoidStudyError(str(found))
        self._say(str(found))

    def _silver(self) -> None:
        tables = [each.name for each in sheets("silver") if not each.shared]
        batches = self._silver_batches()
        stage = self._stage("silver", len(tables) * len(batches))
        for number, waves in enumerate(batches):
            bronze = self._bronze(waves)
            of = made_of(bronze)
            folders = {each: self.lake.silver(each, number) for each in tables}
            todo = self._todo(stage, folders, of)
            if todo:
                define_events(self.engine, bronze)
                for folder in self._keep("silver", folders, todo):
                    mark(folder, of)
                    stage.wrote(folder)
                    stage.step(1)
        for each in tables:
            self.lake.end_before(self.lake.silver(each, len(batches)))

    def _bronze(self, waves: Iterable[int]) -> list[Path]:
        return [self.lake.bronze(wave) for wave in waves]

    def _todo(self, stage: _Stage, folders: Mapping[str, Path], of: str) -> list[str]:
        """Which of these tables have to be made of the waves `of`; reports the others to the
        stage."""
        whole = [each for each in folders if self._whole(folders[each])]
        there = [each for each in whole if _is_of(folders[each], of)]
        other = [folders[each] for each in whole if each not in there]
        if other:
            name = other[0].relative_to(self.lake.root)
            more = f" and {len(other) - 1} more" if len(other) > 1 else ""
            self._say(f"{name}{more}: not known to be made of the waves that are there; made again")
        for each in there:
            stage.found(folders[each], 1)
        return [each for each in folders if each not in there]

    def _silver_batches(self) -> list[list[int]]:
        """Numbers of the waves that are made into silver together."""
        costs = [cost(self.lake.bronze(wave)) for wave, _ in self._waves]
        return in_batches(
            [0 if each is None else each.rows for each in costs], self.plan.batch_rows
        )

    def _judge(self) -> None:
        batches = self._judged_batches()
        stage = self._stage("judge", len(batches))
        for number, waves in enumerate(batches):
            bronze, folder = self._bronze(waves), self.lake.verdicts(number)
            of = made_of(bronze)
            if self._todo(stage, {names.VERDICTS: folder}, of):
                judge_waves(self.engine, bronze, folder)
                mark(folder, of)
                stage.wrote(folder)
                stage.step(1)
        self.lake.end_before(self.lake.verdicts(len(batches)))

    def _judged_batches(self) -> list[list[int]]:
        """Numbers of the waves that are judged together."""
        rows = [0] * len(self._waves)
        for number, _ in enumerate(self._silver_batches()):
            for run, events in _judged(self.lake.silver("runs", number)):
                rows[run // self.plan.wave] += events
        return in_batches(rows, self.plan.batch_rows)

    def _agree(self) -> None:
        """Check that SQL, Python and the runs themselves agree. Raises `DisagreementError`."""
        begun, stage = monotonic(), self._stage("agree", 1)
        self._define_silver()
        if told := differences_told(self.engine, self.study):
            raise DisagreementError(f"the judges disagree: {told}")
        self.lake.spend("agree", monotonic() - begun, once=True)
        stage.checked()

    def _gold(self) -> None:
        tables = [each.name for each in sheets("gold") if not each.shared]
        stage = self._stage("gold", len(tables))
        of = made_of(self._bronze(wave for wave, _ in self._waves))
        folders = {each: self.lake.gold(each) for each in tables}
        todo = self._todo(stage, folders, of)
        for folder in self._keep("gold", folders, todo):
            mark(folder, of)
            stage.wrote(folder)
            stage.step(1)
        for each in tables:
            self.engine.define(names.GOLD_PREFIX + each, [folders[each]])

    def _define_silver(self) -> None:
        silver = len(self._silver_batches())
        for each in sheets("silver"):
            if not each.shared:
                kept = [self.lake.silver(each.name, number) for number in range(silver)]
                self.engine.define(each.name, kept, each.types)
        verdicts = [self.lake.verdicts(number) for number in range(len(self._judged_batches()))]
        self.engine.define(names.VERDICTS, verdicts, sheet(JUDGING, names.VERDICTS).types)
        self.engine.make(PAIRS, pairs_query(self.study.variants))
        self.engine.make(names.STUDENT_T, sheet(QUANTILES, names.STUDENT_T).text)
        keep_variants(self.lake, self.engine.described)
        self.engine.define(names.VARIANTS, [self.lake.gold(names.VARIANTS)])

    def _keep(self, layer: str, folders: dict[str, Path], todo: Container[str]) -> Iterator[Path]:
        """Make the wanted tables of a layer, and the views that they share."""
        shared = {each.name: each.text for each in sheets(layer) if each.shared}
        wanted = {each.name: each.text for each in sheets(layer) if each.name in todo}

        def do(name: str) -> None:
            if name in shared:
                self.engine.make(name, shared[name])
            else:
                self.engine.keep(wanted[name], folders[name])

        try:
            for name in in_order(self.engine, shared | wanted, do):
                if name in wanted:
                    yield folders[name]
        finally:
            self.engine.drop(shared)


class _Stage:
    """Reports the progress of a stage, and the time that it took each time a folder is whole."""

    def __init__(
        self, at: Progress, told: Callable[[Progress], None], spend: Callable[[float], None]
    ):
        self._at = at
        self._tell = told
        self._spend = spend
        self._whole = 0  # rows of whole folders; rows beyond these are still being made
        self._begun = self._paid = monotonic()
        self.step(0)

    def step(self, count: int, rows: int = 0) -> None:
        """`count` more is done, with `rows` rows in a folder that is not whole yet."""
        at = self._at
        self._at = replace(
            at,
            done=at.done + count,
            fresh=at.fresh + count,
            rows=at.rows + rows,
            seconds=monotonic() - self._begun,
        )
        self._tell(self._at)

    def checked(self) -> None:
        """A check is done, which makes no folder: every command repeats it."""
        self._at = replace(self._at, done=self._at.done + 1)
        self.step(0)

    def wrote(self, folder: Path) -> None:
        """A folder is whole."""
        paid, self._paid = self._paid, monotonic()
        self._spend(self._paid - paid)
        self._is_there(folder)

    def found(self, folder: Path, count: int) -> None:
        """A folder was there already; it counts for `count`."""
        self._at = replace(self._at, done=self._at.done + count)
        self._paid = monotonic()
        self._is_there(folder)

    def _is_there(self, folder: Path) -> None:
        there = cost(folder)
        self._whole += 0 if there is None else there.rows
        self._at = replace(self._at, rows=self._whole)
        self.step(0)


def _is_of(folder: Path, of: str) -> bool:
    there = cost(folder)
    return there is not None and there.of == of


def in_batches(rows: Sequence[int], most: int) -> list[list[int]]:
    """Waves with so many rows, by number, in batches of at most `most` rows; a larger wave is a
    batch of its own. The result is always the same, so that a study can be continued."""
    batches: list[list[int]] = [[]]
    held = 0
    for wave, more in enumerate(rows):
        if batches[-1] and held + more > most:
            batches.append([])
            held = 0
        batches[-1].append(wave)
        held += more
    return batches


def _judged(runs: Path) -> Iterator[tuple[int, int]]:
    """The judged runs of a batch, from their silver table: number, and rows of history."""
    from pyarrow import parquet

    judged = parquet.read_table(runs, columns=["run_id", "events"], filters=[("judged", "=", True)])
    for run, events in zip(judged["run_id"], judged["events"], strict=True):
        yield run.as_py(), events.as_py() or 0


def keep_variants(lake: Lake, engine: str) -> None:
    """Write table `variants` (`ottla.sim.studies.variants`) for this engine."""
    import pyarrow as pa
    from pyarrow import parquet

    folder = lake.gold(names.VARIANTS)
    if made(folder) is None:
        columns: dict[str, Any] = {**variants_columns(lake.plan.parsed.variants)}
        with making(folder, engine) as part:
            parquet.write_table(pa.table(columns), part / "part-0.parquet")
