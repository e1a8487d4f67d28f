"""What the tables say of runs that are kept: on both engines the same, and the same as ever.

OTTLA_REWRITE=golden writes it down anew, OTTLA_REWRITE=runs simulates the runs anew before.
The runs are kept as Parquet, so that what they show does not change with the simulator.
"""

import shutil

import pytest
from pyarrow import parquet

import studies_golden as golden
from ottla.sim.invariants.judge import judge
from ottla.sim.studies import bronze, judging
from ottla.sim.studies.names import GOLD_PREFIX, VERDICTS
from ottla.sim.studies.pairs import PAIRS, pairs_query
from ottla.sim.studies.sheets import GOLD, SILVER, sheets
from ottla.sim.studies.versions import VERSION, version_of
from studies_cases import make, make_silver, projected

KEPT = ("runs", "failovers", "producers")
LIMIT = 300_000


@pytest.fixture(scope="module", params=["duck", pytest.param("spark", marks=pytest.mark.slow)])
def engine(request):
    """Spark takes a minute for all statements."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def lake(engine, duck, tmp_path_factory):
    """All tables of the runs that are kept; the folder of their bronze. DuckDB judges them, because
    Spark takes a minute for that: in `test_judging` it judges these runs too, among others."""
    if golden.REWRITE == "runs" and engine.name == "duckdb":
        golden.keep_runs()
    out = tmp_path_factory.mktemp("golden")
    folder = out / "bronze"
    folder.mkdir()
    shutil.copy(golden.RUNS, folder / "part-0.parquet")
    judging.judge_waves(duck, [folder], out / VERDICTS)
    make_silver(engine, folder)
    engine.define(VERDICTS, [out / VERDICTS])
    engine.make(PAIRS, pairs_query(golden.study().variants))
    make(engine, GOLD)
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("lake")
def test_the_tables_say_what_they_always_said(engine):
    names = [*KEPT, *(GOLD_PREFIX + each.name for each in sheets(GOLD) if not each.shared)]
    found = {name: engine.rows(f"SELECT * FROM {name}") for name in names}
    if golden.REWRITE and engine.name == "duckdb":
        text = "\n".join(golden.told(name, rows) for name, rows in found.items())
        golden.NUMBERS.write_text(text, encoding="utf-8")
    expected = golden.written(golden.NUMBERS.read_text(encoding="utf-8"))
    for name in names:
        columns = list(found[name][0]) if found[name] else ()
        assert projected(found[name], columns) == projected(expected[name], columns), name


def test_the_runs_that_are_kept_are_few_and_show_something():
    assert golden.RUNS.stat().st_size < LIMIT
    broken = [judge(events).broken for events in golden.kept().values()]
    assert sum(map(bool, broken)) > 2
    assert not all(broken)


def test_the_runs_that_are_kept_are_of_the_version_that_is_written_today():
    """They were of version 1, and no statement met a row of a kind that came with version 2."""
    assert version_of(golden.RUNS) == str(VERSION)


def test_each_run_that_failed_tells_what_was_noticed():
    runs = parquet.read_table(golden.RUNS).to_pylist()
    failed = {row["run_id"] for row in runs if row["kind"] == "run" and row["code"] == "failed"}
    assert failed
    assert {row["run_id"] for row in runs if row["kind"] == "noticed"} == failed


@pytest.mark.usefixtures("lake")
def test_sql_and_python_judge_them_alike(engine):
    assert judging.differences(engine) == []
    found = engine.rows(f"SELECT run_id, invariant FROM {VERDICTS}")
    assert {(row["run_id"], row["invariant"]) for row in found} == {
        (run_id, each) for run_id, events in golden.kept().items() for each in judge(events).broken
    }


@pytest.mark.usefixtures("lake")
def test_every_column_has_the_type_that_its_table_says(engine):
    kinds = {"BIGINT": int, "VARCHAR": str, "DOUBLE": float, "BOOLEAN": bool}
    for layer, prefix in ((SILVER, ""), (GOLD, GOLD_PREFIX)):
        for each in sheets(layer):
            rows = [] if each.shared else engine.rows(f"SELECT * FROM {prefix}{each.name} LIMIT 50")
            for row in rows:
                assert list(row) == list(each.types)
                for name, value in row.items():
                    assert value is None or type(value) is kinds[each.types[name]], (each, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["duck", pytest.param("spark", marks=pytest.mark.nightly)], indirect=True
)
def test_old_bronze_is_read_by_new_code(engine, lake, tmp_path):
    """Version 0 had no column `told`, and no quorum with its commits. Of Spark `test_engines` asks
    each time that columns which old files lack are NULL, and all tables by night."""
    tables = [each.name for each in sheets(SILVER) if not each.shared]
    now = {each: engine.rows(f"SELECT * FROM {each}") for each in tables}
    old = tmp_path / "old"
    old.mkdir()
    rows = parquet.read_table(lake / "part-0.parquet").drop_columns(["told", "quorum"])
    assert len(rows.column_names) == len(bronze.SCHEMA) - 2
    parquet.write_table(rows, old / "part-0.parquet")
    make_silver(engine, old)
    for each in tables:
        known = [{**row, "reason": None} if each == "runs" else row for row in now[each]]
        found = engine.rows(f"SELECT * FROM {each}")
        columns = known[0] if known else ()
        assert projected(found, columns) == projected(known, columns), each
    if engine.name == "duckdb":  # to judge takes Spark a minute, and finds what is in these tables
        judging.judge_waves(engine, [old], tmp_path / VERDICTS)
        engine.define(VERDICTS, [tmp_path / VERDICTS])
        assert {each.invariant for each in judging.differences(engine, 1000)} <= {"sim-I24"}
