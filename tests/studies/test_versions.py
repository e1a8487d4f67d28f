"""Bronze says its version: older ones are read, a newer one is refused.

`data/version-1.parquet` was written by the first commit that had studies, f4d49e1: two runs, of
which the second, mutant M06, failed. That code kept no rows of kind *noticed* and no version.
"""

import shutil

import pytest
from pyarrow import parquet

import studies_golden as golden
from ottla.sim.studies import bronze, judging
from ottla.sim.studies.bronze import Work
from ottla.sim.studies.events import define_events
from ottla.sim.studies.names import VERDICTS
from ottla.sim.studies.study import StudyError
from ottla.sim.studies.versions import KEY, VERSION, version_of
from studies_cases import make_silver
from studies_tiny import TINY

OLD = golden.FOLDER / "version-1.parquet"
OF_SPARK = '{"type":"struct","fields":[{"name":"run_id","type":"long","metadata":{"%s":%d}}]}'


@pytest.fixture(params=["duck", pytest.param("spark", marks=pytest.mark.nightly)])
def judge(request):
    """Spark takes a minute for all statements."""
    return request.getfixturevalue(request.param)


@pytest.mark.slow
def test_every_file_that_an_engine_writes_says_the_version(engine, tmp_path):
    wave = tmp_path / "wave"
    engine.simulate(Work(TINY, 0, 1.0), range(3), wave, lambda *_: None)
    parts = list(wave.glob("*.parquet"))
    assert parts
    assert {version_of(each) for each in parts} == {str(VERSION)}


@pytest.mark.slow
def test_bronze_of_version_1_is_made_into_silver_and_judged(judge, tmp_path):
    assert version_of(OLD) is None
    folder = tmp_path / "bronze"
    folder.mkdir()
    shutil.copy(OLD, folder / "part-0.parquet")
    judging.judge_waves(judge, [folder], tmp_path / VERDICTS)
    make_silver(judge, folder)
    judge.define(VERDICTS, [tmp_path / VERDICTS])
    asked = "verdict, noticed, handed, acknowledged, lost, events"
    known = {"noticed": None, "handed": 6, "acknowledged": 6, "lost": 0}
    assert judge.rows(f"SELECT {asked} FROM runs ORDER BY run_id") == [
        {"verdict": "ok", **known, "events": 252},
        {"verdict": "failed", **known, "events": 242},
    ]
    assert judging.differences(judge) == []
    found = judge.rows(f"SELECT run_id, invariant FROM {VERDICTS}")
    assert found == [{"run_id": 1, "invariant": "sim-I09"}]


def planted(folder, metadata):
    """Bronze without rows that says this of itself."""
    folder.mkdir()
    part = folder / "part-0.parquet"
    parquet.write_table(bronze.schema().with_metadata(metadata).empty_table(), part)
    return part


@pytest.mark.parametrize(
    "metadata",
    [
        {KEY: str(VERSION + 1)},
        {"org.apache.spark.sql.parquet.row.metadata": OF_SPARK % (KEY, VERSION + 1)},
    ],
    ids=["by the pool", "by Spark"],
)
def test_bronze_of_a_newer_version_is_refused_in_one_line(duck, tmp_path, metadata):
    known = planted(tmp_path / "known", {KEY: str(VERSION)})
    newer = planted(tmp_path / "newer", metadata)
    folders = [known.parent, newer.parent]
    for read in (
        lambda: define_events(duck, folders),
        lambda: judging.judge_waves(duck, folders, tmp_path / VERDICTS),
    ):
        with pytest.raises(StudyError) as refused:
            read()
        assert str(refused.value) == (
            f"{newer}: bronze of version {VERSION + 1}; this code knows versions up to {VERSION}"
        )
    define_events(duck, [known.parent])


def test_what_is_no_version_is_refused_too(duck, tmp_path):
    part = planted(tmp_path / "strange", {KEY: "next"})
    with pytest.raises(StudyError, match="bronze of version next; this code knows"):
        define_events(duck, [part.parent])


def test_a_file_that_cannot_be_read_is_left_to_the_engine(duck, tmp_path):
    (tmp_path / "part-0.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(StudyError, match=r"^engine duckdb: "):
        define_events(duck, [tmp_path])
