"""What a study asks of an engine, of both of them.

Types and order of what a query gives, tables that last or do not, files of an older version; that
one engine goes on with what the other began; and what is said when one cannot be had, or
cannot do what it is asked.
"""

import multiprocessing
from contextlib import nullcontext
from importlib import import_module
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyarrow import parquet

from ottla.sim.studies import bronze
from ottla.sim.studies.bronze import Work, histories
from ottla.sim.studies.engine import MANY_RUNS, open_engine
from ottla.sim.studies.lake import made, making
from ottla.sim.studies.study import StudyError
from studies_tiny import TINY, contents, study


def test_rows_come_in_types_that_engines_agree_on(engine):
    (row,) = engine.rows("SELECT SUM(x) AS s, 1.0 * MAX(x) / 4 AS q FROM (SELECT 1 AS x) AS t")
    assert row == {"s": 1, "q": 0.25}
    assert [type(each) for each in row.values()] == [int, float]


BY_ZERO = ["x / y", "x / 0", "1E0 * x / y", "0E0 * x / y", "x % y", "MOD(x, 0)"]


@pytest.mark.parametrize("quotient", BY_ZERO)
def test_what_is_divided_by_zero_is_null(engine, quotient):
    """Infinite on one engine, an error behind hours of work on the other."""
    sql = f"SELECT x, {quotient} AS q FROM (SELECT 7 AS x, 0 AS y) t"
    assert engine.rows(sql) == [{"x": 7, "q": None}]
    seen: list[dict[str, int | None]] = []
    engine.until(sql, seen.append)
    assert seen[-1] == {"x": 7, "q": None}


def test_a_number_that_has_no_place_is_an_error_still(engine):
    """The setting of Spark that has NULL for a quotient has any number for a sum."""
    with pytest.raises(StudyError, match=r"[Oo]verflow"):
        engine.rows("SELECT x + x AS s FROM (SELECT 9223372036854775807 AS x) t")


def test_rows_are_read_in_their_order_until_there_are_enough(engine):
    asked = " UNION ALL ".join(f"SELECT {number} AS a" for number in (3, 1, 4, 2, 5))
    seen = []

    def enough(row):
        seen.append(row)
        return row["a"] == 4

    engine.until(f"SELECT a FROM ({asked}) AS t ORDER BY a", enough)
    assert seen == [{"a": number} for number in (1, 2, 3, 4)]
    engine.until(f"SELECT a FROM ({asked}) AS t WHERE a > 4", enough)
    assert len(seen) == 5


def test_what_is_kept_is_read_back_in_the_same_types(engine, tmp_path):
    assert engine.keep("SELECT 1 AS a, SUM(2) AS b, 1.5 AS c, 'x' AS d", tmp_path / "t") == 1
    found = parquet.read_table(sorted((tmp_path / "t").glob("*.parquet")))
    assert [str(kind) for kind in found.schema.types] == ["int64", "int64", "double", "string"]
    assert found.to_pylist() == [{"a": 1, "b": 2, "c": 1.5, "d": "x"}]


def test_a_table_without_rows_is_a_table(engine, tmp_path):
    assert engine.keep("SELECT 1 AS a WHERE 1 = 0", tmp_path / "none") == 0
    engine.define("nothing", [tmp_path / "none"])
    assert engine.rows("SELECT a FROM nothing") == []
    engine.drop(["nothing"])


def test_a_table_lasts_until_it_is_dropped_and_is_made_anew(engine):
    for value in (1, 2):
        engine.make("one", f"SELECT {value} AS a")
        assert engine.rows("SELECT a FROM one") == [{"a": value}]
    engine.drop(["one", "never_there"])
    with pytest.raises(Exception, match="one"):
        engine.rows("SELECT a FROM one")


def test_what_an_engine_cannot_do_is_one_line(engine, tmp_path):
    for ask in (
        lambda: engine.rows("SELECT lots\nFROM (SELECT 1 AS few) t"),
        lambda: engine.keep("SELECT few +\nFROM nothing", tmp_path / "none"),
        lambda: engine.make("none", "SELECT 1 AS a FROM nowhere"),
        lambda: engine.define("none", [tmp_path / "nowhere"]),
        lambda: engine.rows("SELECT CAST(a AS BIGINT) AS b FROM (SELECT CONCAT('x', UUID()) AS a)"),
    ):
        with pytest.raises(StudyError, match=f"^engine {engine.name}: .") as raised:
            ask()
        assert "\n" not in str(raised.value)
        assert "calling o" not in str(raised.value)


def test_columns_that_old_files_lack_are_null(engine, tmp_path):
    """Version 0 of bronze had no column `told`."""
    events = pa.Table.from_batches(histories(Work(TINY, 0, 1.0), [0]))
    for name, table in (("old", events.drop_columns(["told"])), ("new", events)):
        with making(tmp_path / name) as folder:
            parquet.write_table(table, folder / "part-0.parquet")
    engine.define("mixed", [tmp_path / "old", tmp_path / "new"], bronze.SCHEMA)
    (row,) = engine.rows("SELECT COUNT(*) AS n, COUNT(told) AS told FROM mixed")
    assert row == {"n": 2 * events.num_rows, "told": 0}
    engine.drop(["mixed"])


@pytest.mark.nightly
def test_both_engines_come_to_the_same_gold(duck, spark, tmp_path):
    by_duck = study(tmp_path / "duck", engine=duck, wave=8)
    known = {each: contents(by_duck, each) for each in ("runs", "gold_kills", "variants")}
    by_spark = study(tmp_path / "spark", engine=spark, wave=8)
    assert {each: contents(by_spark, each) for each in known} == known


@pytest.mark.slow
def test_one_engine_goes_on_with_what_the_other_began(duck, spark, tmp_path):
    class EnoughError(Exception):
        """The first engine stops here."""

    def stop(progress):
        if progress.stage == "silver" and progress.done:
            raise EnoughError

    with pytest.raises(EnoughError):
        study(tmp_path, engine=spark, wave=4, told=stop)
    begun = made(tmp_path / "bronze" / "wave=00001")
    gone_on = study(tmp_path, engine=duck, wave=4)
    assert made(tmp_path / "bronze" / "wave=00001") == begun
    assert sorted(row["run_id"] for row in contents(gone_on, "runs")) == list(range(8))


@pytest.mark.slow
def test_a_folder_that_executors_do_not_see_is_named_in_one_line(spark, tmp_path, monkeypatch):
    """The driver has made the folder of marks, and a task finds none."""
    unseen = SimpleNamespace(folder=tmp_path / "mine" / "marks", look=lambda: None)
    monkeypatch.setattr("ottla.sim.studies.spark_sweep.marks_of", lambda *_: nullcontext(unseen))
    with pytest.raises(StudyError) as refused:
        spark.simulate(Work(TINY, 0, 1.0), range(2), tmp_path / "wave", lambda *_: None)
    assert str(refused.value) == (
        f"executors do not see {unseen.folder} as the driver does: No such file or directory"
    )


@pytest.mark.parametrize(
    ("name", "master", "jobs", "told"),
    [
        ("flink", None, 1, "no such engine: flink; one of spark, duckdb, auto"),
        ("duckdb", "local[2]", 1, "--master local[2]: is for Spark; DuckDB has none"),
        ("spark", None, 2, "--jobs 2: is for DuckDB; Spark has cores of its own"),
        ("auto", "local[2]", 2, "--jobs 2: is for DuckDB; Spark has cores of its own"),
    ],
)
def test_what_cannot_be_opened_is_said_in_one_line(name, master, jobs, told):
    with pytest.raises(StudyError) as refused:
        open_engine(name, master=master, jobs=jobs)
    assert str(refused.value) == told


@pytest.fixture
def nowhere(monkeypatch):
    """An environment that says of no place where Spark is."""
    for name in ("MASTER", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def spark_here(monkeypatch):
    """A machine that has all that Spark needs, and opens a session at once."""
    for name in ("MASTER", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("ottla.sim.studies.engine.spark_lacks", lambda *_: None)
    monkeypatch.setattr("ottla.sim.studies.spark.spark_session", lambda *_: "a session")
    monkeypatch.setattr("ottla.sim.studies.spark.Spark", Opened)


class Opened:
    """Stands for Spark."""

    name = "spark"

    def __init__(self, _session, made, *_):
        made.cleanup()

    def close(self):
        pass


def auto(**asked):
    """The name of what *auto* opens, and what it tells."""
    lines: list[str] = []
    opened = open_engine("auto", told=lines.append, **asked)
    opened.close()
    return opened.name, lines


@pytest.mark.usefixtures("spark_here")
def test_auto_is_duckdb_where_nobody_asks_for_spark():
    """It was Spark wherever Java was: the study of the how-to was not done after 420 s, in 21 s
    by DuckDB."""
    assert auto(jobs=2, runs=MANY_RUNS) == ("duckdb", [])


@pytest.mark.usefixtures("spark_here")
def test_auto_is_spark_for_more_than_one_machine_does_and_says_so():
    name, (line,) = auto(jobs=2, runs=MANY_RUNS + 1)
    why = "1,000,001 runs are more than one machine does in a day"
    assert (name, line) == ("spark", f"engine spark: {why}; --jobs 2 is for DuckDB")


@pytest.mark.usefixtures("spark_here")
def test_auto_is_spark_where_the_environment_says_where_it_is(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    assert auto() == ("spark", ["engine spark: the environment says where it is"])
    assert auto(master="local[2]") == ("spark", [])


@pytest.mark.usefixtures("spark_here")
def test_auto_is_spark_where_duckdb_is_missing(monkeypatch):
    monkeypatch.setattr("ottla.sim.studies.engine.find_spec", lambda _: None)
    assert auto() == ("spark", ["engine spark: DuckDB is missing"])


@pytest.mark.usefixtures("spark_here")
def test_where_a_session_cannot_be_had_auto_takes_duckdb_and_says_why(monkeypatch):
    """As with a Java that is newer than Hadoop knows."""

    def too_new(*_):
        raise StudyError("engine spark: getSubject is not supported")

    monkeypatch.setattr("ottla.sim.studies.spark.spark_session", too_new)
    assert auto(jobs=2, runs=MANY_RUNS + 1) == (
        "duckdb",
        ["engine duckdb, not Spark: getSubject is not supported"],
    )
    for name, master in (("spark", None), ("auto", "local[2]")):
        with pytest.raises(StudyError, match="engine spark: getSubject"):
            open_engine(name, master=master)
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    with pytest.raises(StudyError, match="engine spark: getSubject"):
        open_engine("auto")


@pytest.mark.usefixtures("nowhere")
def test_where_java_cannot_be_run_auto_takes_duckdb_and_says_why(monkeypatch, tmp_path):
    """As with one that was built for another machine; it was a traceback."""
    pytest.importorskip("pyspark")
    java = tmp_path / "java"
    java.write_bytes(b"\0 of another machine")
    java.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    name, (line,) = auto(jobs=1, runs=MANY_RUNS + 1)
    assert name == "duckdb"
    assert line.startswith(f"engine duckdb, not Spark: {java} cannot be run: install a Java")
    with pytest.raises(StudyError, match=r"engine spark: .* cannot be run: install"):
        open_engine("spark")


@pytest.mark.slow
def test_a_child_of_a_program_with_a_session_has_the_package_whole(spark):
    """It found the zip that executors get, which is not the whole package, before its own."""
    assert spark.described
    child = multiprocessing.get_context("spawn").Process(
        target=import_module, args=("ottla.testing",)
    )
    child.start()
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.slow
def test_what_a_worker_raises_is_the_last_line_of_its_trace(spark, tmp_path):
    """The line was empty: what PySpark says of it begins with a line break."""
    with pytest.raises(StudyError) as raised:
        spark.simulate(Work("nothing = 3", 0, 1), range(4), tmp_path / "bronze", print)
    told = str(raised.value)
    assert told.startswith("engine spark: ottla.sim.studies.study.StudyError: "), told
    assert told.endswith(" (in a worker's Python)")
    assert "\n" not in told


@pytest.mark.slow
def test_folders_are_those_of_the_machine_whatever_file_system_spark_has(spark, tmp_path):
    """As on clusters of Hadoop's, where a path without a scheme is one of HDFS."""
    folder = tmp_path / "a b%20c"
    spark.session.conf.set("fs.defaultFS", "s9://nowhere")
    try:
        assert spark.keep("SELECT 1 AS run_id", folder) == 1
        spark.define("kept", [folder])
        spark.make("made", "SELECT run_id FROM kept")
        assert spark.rows("SELECT run_id FROM made") == [{"run_id": 1}]
    finally:
        spark.session.conf.unset("fs.defaultFS")
    spark.drop(["made", "kept"])
    assert [each.suffix for each in folder.glob("*.parquet")] == [".parquet"]
