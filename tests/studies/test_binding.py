"""What a study asks is held against its tables before anything is run.

Queries that are good SQL on both engines pass, and so does every study that ships; a query, a chart
or a sentence that cannot be is one line that names its key.
"""

import re

import duckdb
import pytest

from cli_process import ottla
from ottla.sim.studies.binding import INTERRUPTED, check_queries
from ottla.sim.studies.study import StudyError, catalogue, parse
from studies_tiny import TINY

CHART = """
[[chart]]
title = "Lost"
kind = "{kind}"
x = "x"
y = "y"
sql = '''{sql}'''
"""
WORST = """
[worst]
sql = '''{sql}'''
text = "{text}"
"""
TABLE = """
[[table]]
title = "Runs"
sql = '''{sql}'''
"""


def test_ctrl_c_during_the_check_is_ctrl_c(monkeypatch):
    """It was a traceback of 56 lines: DuckDB had made a RuntimeError of it."""

    class Connection:
        def execute(self, _):
            raise RuntimeError(INTERRUPTED)

        def close(self):
            pass

    monkeypatch.setattr(duckdb, "connect", lambda **_: Connection())
    with pytest.raises(KeyboardInterrupt):
        check(TINY)


def check(text):
    check_queries(parse(text))


def answered(sql, text="{n}"):
    asked = TINY.partition("[answer]")[0]
    return f"{asked}[answer]\nsql = '''{sql}'''\ntext = '{text}'\n"


def lines(sql, kind="lines"):
    return TINY + CHART.format(sql=sql, kind=kind)


def worst(sql, text="{seed}"):
    return TINY + WORST.format(sql=sql, text=text)


@pytest.mark.parametrize("name", catalogue())
def test_what_ships_fits(name):
    check(catalogue()[name])


@pytest.mark.parametrize(
    "text",
    [
        answered(
            "SELECT COUNT(*) AS n FROM runs a JOIN runs b ON b.run_id = a.run_id\n"
            "WHERE a.lost IS DISTINCT FROM b.lost -- taken from the log"
        ),
        answered("WITH few (n) AS (SELECT COUNT(*) FROM verdicts) SELECT n FROM few;"),
        answered("SELECT COUNT(*) AS n FROM gold_kills, pairs, python_verdicts, variants"),
        answered("SELECT SUM(v.acks) AS n FROM variants v", "{n:,} and {n:.1f}"),
        answered("SELECT AVG(lost) AS n, MAX(verdict) AS word FROM runs", "{n:.1%} {word:>9}"),
        answered("SELECT MAX(failure) AS n, MAX(label) AS label, MAX(line) AS line FROM variants"),
        lines(
            "SELECT verdict AS series, run_id AS x, 1.5 AS y, NULL AS low, NULL AS high FROM runs"
        ),
        lines("SELECT 'all' AS series, verdict AS x, COUNT(*) AS y FROM runs GROUP BY 2", "bars"),
        worst("SELECT run_id, seed FROM runs ORDER BY run_id"),
        worst("SELECT run_id, seed FROM runs LIMIT 1"),
        worst("SELECT run_id, seed FROM runs;"),
    ],
)
def test_what_engines_take_is_not_refused(text):
    check(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (answered("SELECT COUNT(*) AS n, lots FROM runs"), 'answer.sql: .*"lots" not found'),
        (answered("SELECT n\nFROM (SELECT COUNT(*) AS n\nFORM runs)"), "answer.sql: .*line 3"),
        (answered("SELECT MEDIUM(lost) AS n FROM runs"), "answer.sql: .*name medium"),
        (answered("SELECT COUNT(*) AS n FROM nothing"), "answer.sql: .*name nothing does not"),
        (answered("SELECT COUNT(*) AS n FROM ev"), "answer.sql: .*name ev does not"),
        (answered("SELECT COUNT(*) AS n FROM 'x.parquet'"), "answer.sql: .*Cannot access file"),
        (answered("SELECT MAX(rtt_us) AS n FROM variants"), 'answer.sql: .*"rtt_us" not found'),
        (answered("SELECT 1 AS n; SELECT 2 AS n"), "answer.sql: one query is expected"),
        (answered("DROP TABLE runs"), "answer.sql: one query is expected"),
        (answered("-- nothing"), "answer.sql: one query is expected"),
        (answered("SELECT COUNT(*) AS n FROM runs", "{lots}"), "answer.text: no column 'lots'"),
        (
            answered("SELECT MAX(verdict) AS n FROM runs", "{n:,}"),
            r"answer.text: {:,} is for numbers, ",
        ),
        (answered("SELECT COUNT(*) AS n FROM runs", "{n.most}"), "answer.text: no column 'n.most'"),
        (answered("SELECT 1 AS n, 2 AS n FROM runs"), "answer.sql: two columns are called n"),
        (TINY + TABLE.format(sql="SELECT x FROM runs"), r'table.sql \("Runs"\): .*"x" not found'),
        (
            lines("SELECT 1 AS x, 2 AS y FROM runs"),
            r'chart.sql \("Lost"\): there is no column seri',
        ),
        (
            lines("SELECT 'a' AS series, verdict AS x, 1 AS y FROM runs"),
            r'chart.sql \("Lost"\): x is VARCHAR; a number is expected',
        ),
        (
            lines("SELECT 'a' AS series, 1 AS x, verdict AS y FROM runs", "bars"),
            r'chart.sql \("Lost"\): y is VARCHAR; a number is expected',
        ),
        (
            lines("SELECT 'a' AS series, 1 AS x, 1 AS y, TRUE AS low, 1 AS high FROM runs"),
            r'chart.sql \("Lost"\): low is BOOLEAN; a number is expected',
        ),
        (
            lines("SELECT 'a' AS series, 1 AS x, 1 AS y, 1 AS low, 1 AS hihg FROM runs"),
            r'chart.sql \("Lost"\): low and high go together, or neither; there are series, x,',
        ),
        (worst("SELECT seed FROM runs"), "worst.sql: there is no column run_id"),
        (worst("SELECT run_id FROM runs"), "worst.text: no column 'seed'"),
        (worst("SELECT verdict AS run_id, seed FROM runs"), "worst.sql: run_id is VARCHAR"),
        (worst("SELECT run_id, seed, 'a' AS at_us FROM runs"), "worst.sql: at_us is VARCHAR"),
    ],
)
def test_what_does_not_fit_names_the_key_in_one_line(text, told):
    with pytest.raises(StudyError, match=told) as raised:
        check(text)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_nothing_is_run_then_and_no_folder_is_made(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text(answered("SELECT COUNT(*) AS n, lots FROM runs"))
    done = ottla("study", "run", file, "--engine", "duckdb", "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert re.match(r'ottla: answer\.sql: .*"lots" not found', line)
    assert not (tmp_path / "out").exists()
