"""The pipeline: sweep, silver, judge, gold, report; each stage goes on where it was stopped.

    sweep    runs -> bronze, wave by wave
    silver   bronze -> silver, wave by wave
    judge    bronze of judged runs -> SQL verdicts, in batches of waves
    gold     silver of all waves -> gold

What is there is not made again, so a study that is whole costs nothing to run again. Nothing is
collected here but what gold and the report need: memory does not grow with the number of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from ottla.sim.studies import names
from ottla.sim.studies.bronze import Work
from ottla.sim.studies.engine import Engine
from ottla.sim.studies.events import define_events
from ottla.sim.studies.judging import differences, judge_waves
from ottla.sim.studies.lake import Lake, made, making
from ottla.sim.studies.pairs import PAIRS, pairs_query
from ottla.sim.studies.sheets import JUDGING, sheet, sheets
from ottla.sim.studies.study import DisagreementError

STAGES = ("sweep", "silver", "judge", "gold")
BATCH_ROWS = 3_000_000
"""About so many rows of judged runs are judged at once: fewer cost Spark its start again and again,
more do not fit into a small heap."""
_TOLD = 3
"""Differences between SQL and Python that are told; the first is enough to begin with."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a stage is."""

    stage: str
    done: int
    """Of what it does: runs of a sweep, else folders."""
    of: int
    rows: int
    """Written so far, the runs before a resume included."""
    seconds: float
    """Since this stage was begun or gone on with."""
    fresh: int
    """Of `done`, what was not there before."""


class Pipeline:
    """A study under way. `told` hears of every step."""

    def __init__(self, lake: Lake, engine: Engine, told: Callable[[Progress], None]):
        self.lake = lake
        self.plan = lake.plan
        self.study = lake.plan.parsed
        self.engine = engine
        self._told = told
        self._waves = tuple(enumerate(self.plan.waves()))

    def run(self) -> None:
        """Do what is left to do. Raises `StudyError`."""
        self._sweep()
        self._silver()
        self._judge()
        self._agree()
        self._gold()

    def _sweep(self) -> None:
        plan = self.plan
        work = Work(plan.study, plan.first, plan.share)
        stage = _Stage("sweep", plan.runs, self._told)
        for number, runs in self._waves:
            folder = self.lake.bronze(number)
            if made(folder) is None:
                self.engine.simulate(work, runs, folder, stage.step)
                stage.wrote(folder)
            else:
                stage.found(folder, len(runs))

    def _silver(self) -> None:
        tables = [each.name for each in sheets("silver") if not each.shared]
        stage = _Stage("silver", len(tables) * len(self._waves), self._told)
        for number, _ in self._waves:
            folders = {each: self.lake.silver(each, number) for each in tables}
            todo = [each for each in tables if made(folders[each]) is None]
            for each in tables:
                if each not in todo:
                    stage.found(folders[each], 1)
            if todo:
                define_events(self.engine, [self.lake.bronze(number)])
                for folder in self._keep("silver", folders, todo):
                    stage.wrote(folder)
                    stage.step(1)

    def _judge(self) -> None:
        batches = self._batches()
        stage = _Stage("judge", len(batches), self._told)
        for number, waves in enumerate(batches):
            folder = self.lake.verdicts(number)
            if made(folder) is None:
                judge_waves(self.engine, [self.lake.bronze(wave) for wave in waves], folder)
                stage.wrote(folder)
                stage.step(1)
            else:
                stage.found(folder, 1)

    def _batches(self) -> list[list[int]]:
        """Numbers of the waves that are judged at once: the same whenever it is asked."""
        batches: list[list[int]] = [[]]
        rows = 0
        for wave, _ in self._waves:
            more = _judged_rows(self.lake.silver("runs", wave))
            if batches[-1] and rows + more > BATCH_ROWS:
                batches.append([])
                rows = 0
            batches[-1].append(wave)
            rows += more
        return batches

    def _agree(self) -> None:
        """SQL and Python have judged alike. Raises `DisagreementError` where they have not."""
        self._define_silver()
        found = differences(self.engine)
        if found:
            told = "; ".join(each.told(self.study) for each in found[:_TOLD])
            more = f"; and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
            raise DisagreementError(f"SQL and Python do not judge alike: {told}{more}")

    def _gold(self) -> None:
        tables = [each.name for each in sheets("gold") if not each.shared]
        stage = _Stage("gold", len(tables), self._told)
        folders = {each: self.lake.gold(each) for each in tables}
        todo = [each for each in tables if made(folders[each]) is None]
        for each in tables:
            if each not in todo:
                stage.found(folders[each], 1)
        for folder in self._keep("gold", folders, todo):
            stage.wrote(folder)
            stage.step(1)
        for each in tables:
            self.engine.define(names.GOLD_PREFIX + each, [folders[each]])

    def _define_silver(self) -> None:
        for each in sheets("silver"):
            if not each.shared:
                waves = [self.lake.silver(each.name, number) for number, _ in self._waves]
                self.engine.define(each.name, waves, each.types)
        batches = [self.lake.verdicts(number) for number, _ in enumerate(self._batches())]
        self.engine.define(names.VERDICTS, batches, sheet(JUDGING, names.VERDICTS).types)
        self.engine.make(PAIRS, pairs_query(self.study.variants))
        keep_variants(self.lake)
        self.engine.define(names.VARIANTS, [self.lake.gold(names.VARIANTS)])

    def _keep(self, layer: str, folders: dict[str, Path], todo: Iterable[str]) -> Iterator[Path]:
        """Make the tables of a layer that are wanted, and what they share."""
        shared = []
        for each in sheets(layer):
            if each.shared:
                shared.append(each.name)
                self.engine.make(each.name, each.text)
            elif each.name in todo:
                self.engine.keep(each.text, folders[each.name])
                yield folders[each.name]
        self.engine.drop(shared)


class _Stage:
    """Tells how far a stage is."""

    def __init__(self, name: str, of: int, told: Callable[[Progress], None]):
        self._name = name
        self._of = of
        self._tell = told
        self._done = self._fresh = self._rows = 0
        self._begun = monotonic()
        self.step(0)

    def step(self, count: int) -> None:
        """So much more is over."""
        self._done += count
        self._fresh += count
        passed = monotonic() - self._begun
        self._tell(Progress(self._name, self._done, self._of, self._rows, passed, self._fresh))

    def wrote(self, folder: Path) -> None:
        """A folder is whole."""
        cost = made(folder)
        self._rows += 0 if cost is None else cost.rows
        self.step(0)

    def found(self, folder: Path, count: int) -> None:
        """A folder was there already, and what it stands for."""
        self._done += count
        self.wrote(folder)


def _judged_rows(runs: Path) -> int:
    """How many rows the histories of judged runs have, by their silver table."""
    from pyarrow import compute, parquet

    judged = parquet.read_table(runs, columns=["events"], filters=[("judged", "=", True)])
    return compute.sum(judged["events"]).as_py() or 0


def keep_variants(lake: Lake) -> None:
    """The table `variants`: number, label, line (the label of its line in the file), failure, and a
    column for whatever else varies."""
    import pyarrow as pa
    from pyarrow import parquet

    variants = lake.plan.parsed.variants
    columns: dict[str, list[Any]] = {
        "variant": [each.number for each in variants],
        "label": [each.label for each in variants],
        "line": [each.line for each in variants],
        "failure": [each.failure for each in variants],
    }
    for name in lake.plan.parsed.varying:
        if name not in columns:
            columns[name] = [each.cells[name] for each in variants]
    table = pa.table(columns)
    failure = table.schema.get_field_index("failure")
    table = table.set_column(failure, "failure", table["failure"].cast(pa.string()))
    folder = lake.gold(names.VARIANTS)
    if made(folder) is None:
        with making(folder) as part:
            parquet.write_table(table, part / "part-0.parquet")
