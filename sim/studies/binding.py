"""Checks, before anything is run, that a study's queries fit the tables that it will have.

Every query of the file is bound (DuckDB's word) against empty tables with the columns of
`sheets.py`: names, types and functions are looked up, nothing is computed. Its columns are then
compared with those that the chart, the sentence or the list of worst runs needs.

The SQL is the same on both engines, so this works for a study on Spark too, if DuckDB can be
imported. If it cannot, mistakes show when the query runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any, TypeAlias

from ottla.broker.arguments.spelling import listed
from ottla.sim.studies import names
from ottla.sim.studies.pairs import PAIRS, pairs_query
from ottla.sim.studies.sentences import filled
from ottla.sim.studies.sheets import GOLD, JUDGING, QUANTILES, SILVER, sheets
from ottla.sim.studies.study import ChartAsked, Study, StudyError
from ottla.sim.studies.variants import variants_columns

Columns: TypeAlias = Mapping[str, str]
"""The columns of a query, with their SQL types."""
_PREFIXES = {SILVER: "", JUDGING: "", GOLD: names.GOLD_PREFIX, QUANTILES: ""}
_SHUT: Mapping[str, str] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
}
"""Settings under which a study reads only its tables: no files, and no variables of this
program."""
_KINDS = {bool: "BOOLEAN", int: "BIGINT", str: "VARCHAR"}
_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*|\"NULL\"")
_LINE = re.compile(r"^LINE (\d+):", re.MULTILINE)


INTERRUPTED = "Query interrupted"
"""DuckDB's error after Ctrl-C, which it handles itself."""


def check_queries(study: Study) -> None:
    """Raises `StudyError`, one line that names the key, for a query that no engine could answer or
    whose columns are wrong, and for an empty heading of the report."""
    _check_headings(study)
    try:
        import duckdb
    except ImportError:  # only Spark is installed
        return
    try:
        with closing(duckdb.connect(config={**_SHUT})) as connection:
            _make_tables(connection, study)
            _check(connection, study)
    except RuntimeError as error:
        if str(error) != INTERRUPTED:
            raise
        raise KeyboardInterrupt from None


def _check_headings(study: Study) -> None:
    """This is not checked while reading, so that a study that ran with an empty heading can be
    corrected and continued."""
    headings = [("title", study.title), ("question", study.question)]
    headings.append(("answer.text", study.answer.text))
    headings += [("table.title", each.title) for each in study.tables]
    headings += [("chart.title", each.title) for each in study.charts]
    for key, text in headings:
        if not text.strip():
            raise StudyError(f"{key} is empty; write what the report is to say there")


def _make_tables(connection: Any, study: Study) -> None:
    tables = {
        f"{prefix}{each.name}": each.types
        for layer, prefix in _PREFIXES.items()
        for each in sheets(layer)
        if not each.shared
    }
    tables[names.VARIANTS] = {
        name: _KINDS[type(values[0])] for name, values in variants_columns(study.variants).items()
    }
    for table, types in tables.items():
        columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
        connection.execute(f"CREATE TABLE {table} ({columns})")
    connection.execute(f"CREATE TABLE {PAIRS} AS {pairs_query(study.variants)} LIMIT 0")


def _check(connection: Any, study: Study) -> None:
    columns = _bound(connection, study.answer.sql, "answer.sql")
    filled(study.answer.text, _made_up(columns), "answer")
    for table in study.tables:
        _bound(connection, table.sql, f'table.sql ("{table.title}")')
    for chart in study.charts:
        where = f'chart.sql ("{chart.title}")'
        _check_chart(chart, _bound(connection, chart.sql, where), where)
    if study.worst is not None:
        columns = _bound(connection, study.worst.sql, "worst.sql")
        _check_numbers(columns, ("run_id",), ("at_us", "partition"), "worst.sql")
        filled(study.worst.text, _made_up(columns), "worst")


def _check_chart(chart: ChartAsked, columns: Columns, where: str) -> None:
    for name in ("series", "x"):
        if name not in columns:
            raise StudyError(f"{where}: there is no column {name}; {_given(columns)}")
    if ("low" in columns) != ("high" in columns):
        raise StudyError(f"{where}: low and high go together, or neither; {_given(columns)}")
    numbers = ("x", "y") if chart.kind == "lines" else ("y",)
    _check_numbers(columns, numbers, ("low", "high"), where)


def _check_numbers(
    columns: Columns, needed: tuple[str, ...], more: tuple[str, ...], where: str
) -> None:
    for name in needed:
        if name not in columns:
            raise StudyError(f"{where}: there is no column {name}; {_given(columns)}")
    for name in (*needed, *more):
        if name in columns and not _NUMBER.fullmatch(columns[name]):
            raise StudyError(f"{where}: {name} is {columns[name]}; a number is expected")


def _given(columns: Columns) -> str:
    return f"there are {listed(columns)}"


def _bound(connection: Any, sql: str, where: str) -> Columns:
    """The columns of a query."""
    import duckdb

    try:
        asked = connection.extract_statements(sql)
        if [each.type for each in asked] != [duckdb.StatementType.SELECT]:
            raise StudyError(f"{where}: one query is expected, one that begins with SELECT or WITH")
        found = [row[:2] for row in connection.execute(f"DESCRIBE {sql}").fetchall()]
    except duckdb.Error as error:
        raise StudyError(f"{where}: {_told(error)}") from None
    name, count = Counter(name for name, _ in found).most_common(1)[0]
    if count > 1:
        raise StudyError(f"{where}: two columns are called {name}; write AS and another name")
    return dict(found)


def _told(error: Exception) -> str:
    """The first line of DuckDB's error, the second if it names candidates, and the line of the
    query."""
    text = str(error)
    first, _, rest = text.partition("\n")
    second = rest.partition("\n")[0]
    more = f" {second}" if second.startswith("Candidate bindings") else ""
    line = _LINE.search(text)
    return f"{first}{more}" + (f" (line {line[1]})" if line and line[1] != "1" else "")


def _made_up(columns: Columns) -> dict[str, Any]:
    """A possible row of the query: if a sentence cannot be filled from it, it never can."""
    return {name: _value(kind) for name, kind in columns.items()}


def _value(kind: str) -> Any:
    if kind in {"VARCHAR", "BOOLEAN"}:
        return "word" if kind == "VARCHAR" else True
    if not _NUMBER.fullmatch(kind):
        return None
    return 1 if "INT" in kind else 1.0
