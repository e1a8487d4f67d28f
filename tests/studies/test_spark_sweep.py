"""A wave that Spark's workers crash in: what people are told of it, and what is done again.

The session is one of this process: tasks run here, one after the other, and a run that is to take
its worker along raises what nothing below a task catches. What Spark says of it then is said here.
"""

import pytest

from ottla.sim.studies import bronze, spark_sweep
from ottla.sim.studies.bronze import Work
from ottla.sim.studies.lake import made
from ottla.sim.studies.spark_sweep import Sweeper
from ottla.sim.studies.study import StudyError
from ottla.sim.studies.trial import trial as whole
from studies_tiny import TINY

pa = pytest.importorskip("pyarrow")
errors = pytest.importorskip("pyspark.errors")
types = pytest.importorskip("pyspark.sql.types")

RUNS = range(8)
CRASHED = "Job aborted.\nPython worker exited unexpectedly (crashed)"
AGAIN = "the wave is run again"


class WorkerDiedError(BaseException):
    """A worker is gone: no `except Exception` of a run keeps it."""


class Session:
    """What a sweep asks of Spark's."""

    def __init__(self):
        self.asked = []

    def range(self, start, stop, *_):
        self.asked.append(range(start, stop))
        return Frame(self.asked[-1])


class Frame:
    """A DataFrame and its writer in one."""

    def __init__(self, runs):
        self.runs = runs
        self.write = self

    def mapInArrow(self, do, _):  # noqa: N802 - Spark's name
        self.do = do
        return self

    def told(self, *_):
        return self

    option = mode = format = told

    def save(self):
        asked = pa.RecordBatch.from_pydict({"id": list(self.runs)})
        try:
            self.batches = list(self.do(iter([asked])))
        except WorkerDiedError:
            raise errors.PySparkException(CRASHED) from None

    def parquet(self, url):
        from pyarrow import parquet

        self.save()
        folder = url.removeprefix("file://")
        parquet.write_table(pa.Table.from_batches(self.batches), f"{folder}/part-0.parquet")


@pytest.fixture
def session(monkeypatch):
    """It asks no JVM for a type, and no crash is waited for."""
    monkeypatch.setattr(types.StructType, "fromDDL", lambda _: types.StructType().add("a", "long"))
    monkeypatch.setattr(spark_sweep, "sleep", lambda _: None)
    return Session()


def crashing(monkeypatch, *dies):
    """Each of these is asked of a run that begins: whether its worker dies."""

    def trial(study, variant, seed):
        if any(each(seed, variant.number) for each in dies):
            raise WorkerDiedError
        return whole(study, variant, seed)

    monkeypatch.setattr(bronze, "trial", trial)


def each_time(seed, variant, *whether):
    """Whether it dies of a run, the first time that it is begun, the second, and so on."""
    left = iter(whether)
    return lambda *run: run == (seed, variant) and next(left)


def swept(session, tmp_path):
    """What was said."""
    lines: list[str] = []
    sweeper = Sweeper(session, "spark", lines.append)
    sweeper.simulate(Work(TINY, 0, 1.0), RUNS, tmp_path / "wave", lambda *_: None)
    assert made(tmp_path / "wave") is not None
    return lines


@pytest.mark.slow
def test_a_wave_that_nothing_happens_to_is_run_once_without_a_word(session, tmp_path):
    assert swept(session, tmp_path) == []
    assert session.asked == [RUNS]


@pytest.mark.slow
def test_a_seed_that_kills_its_worker_is_named_before_the_wave_is_run_again(
    session, tmp_path, monkeypatch
):
    crashing(monkeypatch, lambda *run: run in {(1, 0), (2, 1)})
    kills = "kills its process: a row of its own"
    assert swept(session, tmp_path) == [
        f"seed 1 of acks=1 {kills}; {AGAIN}",
        f"seed 2 of acks=-1 {kills}; {AGAIN}",
    ]
    assert session.asked == [RUNS, range(2, 3), RUNS, range(5, 6), RUNS]


@pytest.mark.slow
def test_a_worker_that_died_by_chance_is_why_a_wave_is_run_again(session, tmp_path, monkeypatch):
    crashing(monkeypatch, each_time(1, 1, True, False, False))
    said = "a worker crashed, and none of the runs under way does it alone"
    assert swept(session, tmp_path) == [f"{said}; {AGAIN}"]
    assert session.asked == [RUNS, range(3, 4), RUNS]


@pytest.mark.slow
def test_a_second_crash_that_no_run_is_to_blame_for_says_what_was_under_way(
    session, tmp_path, monkeypatch
):
    """Nothing was: the marks had been taken away to find out."""
    crashing(monkeypatch, each_time(1, 1, True, False, True, False))
    with pytest.raises(StudyError) as ended:
        swept(session, tmp_path)
    told = str(ended.value)
    assert told.startswith("engine spark: Job aborted.")
    assert "; under way: seed 1 of acks=-1; the same command goes on" in told
