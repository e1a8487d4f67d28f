"""Hand-made studies: text files under tests/studies/cases, and what they say in full.

A history is written as in `sim_histories`; a table as people write them, with a line for the names
of the columns. `-` is NULL.

    == a leader that crashes
    leader term=1 log_index=2
    crash node=1 log_index=3 off=1

    failovers
    | old_node | cause |
    | 1        | crash |

An expected table has all rows of that run, in any order, with exactly these columns. Table `bronze`
is different: its rows come after the history, and replace those that follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ottla.sim.history.history import Event
from ottla.sim.invariants.judge import judge
from ottla.sim.studies import bronze
from ottla.sim.studies.engine import Engine
from ottla.sim.studies.events import define_events
from ottla.sim.studies.names import VERDICTS
from ottla.sim.studies.sheets import GOLD, JUDGING, SILVER, Sheet, sheet, sheets
from ottla.sim.studies.spark import Spark
from sim_histories import read

FOLDER = Path(__file__).parents[1] / "studies" / "cases"
Row: TypeAlias = dict[str, Any]
NOTHING = "-"
FEW = 30
"""So many rows are a view in Spark, which takes half a second to make a table of its own."""


@dataclass
class Case:
    """One history, and what is to come of it."""

    name: str
    events: list[Event]
    expected: dict[str, list[Row]] = field(default_factory=dict)
    """Rows by the name of the table."""
    behind: list[Row] = field(default_factory=list)
    """As of `Run`."""


def cases(file: str) -> list[Case]:
    """The hand-made histories of one file."""
    found = []
    for block in (FOLDER / file).read_text(encoding="utf-8").split("== ")[1:]:
        name, _, text = block.partition("\n")
        told, tables = _split(text)
        (history,) = read(f"== {name}\n{told}", file)
        behind = tables.pop("bronze", [])
        found.append(Case(name, history.events, tables, behind))
    return found


def tables(file: str) -> dict[str, list[Row]]:
    """The hand-made tables of one file, by the words before them."""
    return _split((FOLDER / file).read_text(encoding="utf-8"))[1]


def _split(text: str) -> tuple[str, dict[str, list[Row]]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    plain, found = [], {}
    place = 0
    while place < len(lines):
        end = place + 1
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        if end > place + 1:
            found[lines[place].strip()] = table(lines[place + 1 : end])
        else:
            plain.append(lines[place])
        place = end
    return "\n".join(plain), found


def table(lines: Sequence[str]) -> list[Row]:
    """The rows of a table that a person wrote."""
    names, *rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in lines)
    return [dict(zip(names, map(_value, row), strict=True)) for row in rows]


def _value(cell: str) -> Any:
    if cell == NOTHING:
        return None
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(cell, cell)


def projected(rows: Iterable[Row], columns: Iterable[str]) -> list[Row]:
    """Some columns of rows, in an order that has nothing to do with them; figures as one reads
    them."""
    names = list(columns)
    kept = [{name: _rounded(row[name]) for name in names} for row in rows]
    return sorted(kept, key=repr)


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


# --- into an engine -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One run of a hand-made study."""

    events: Sequence[Event]
    variant: int = 0
    seed: int = 0
    verdict: str | None = None
    """What Python says; what the history shows, if nothing is said."""
    reached: tuple[str, ...] = ()
    behind: Sequence[Row] = ()
    """Rows of bronze that are no event; those that follow from the history, if none are given."""


def write(runs: Sequence[Run], folder: Path) -> Path:
    """Bronze of these runs, all of them judged; their places are their numbers."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True)
    rows = [row for number, run in enumerate(runs) for row in _rows(number, run)]
    names = bronze.schema().names
    columns = [[row[place] for row in rows] for place in range(len(names))]
    arrays = [
        pa.array(each, kind) for each, kind in zip(columns, bronze.schema().types, strict=True)
    ]
    parquet.write_table(pa.table(arrays, schema=bronze.schema()), folder / "part-0.parquet")
    return folder


def _rows(number: int, run: Run) -> Iterator[tuple[Any, ...]]:
    behind = run.behind or _behind(number, run)
    head = (number, run.seed, run.variant, all(row["kind"] != "breakdown" for row in behind))
    for event in run.events:
        yield (*head, *event, None)
    last = run.events[-1].t_us if run.events else 0
    for eid, row in enumerate(behind, len(run.events)):
        columns = {name: value for name, value in row.items() if name != "told"}
        yield (*head, *Event(**{"eid": eid, "t_us": last, **columns}), row.get("told"))


def _behind(number: int, run: Run) -> list[Row]:
    broken = sorted(judge(run.events).broken)
    verdict = run.verdict or ("failed" if broken else "ok")
    return [
        *({"kind": "reached", "code": each} for each in run.reached),
        *({"kind": "verdict", "code": each} for each in broken),
        {"kind": "run", "code": verdict, "off": len(run.events), "aux": 1, "chain": number},
    ]


def make(engine: Engine, layer: str, asked: str | None = None) -> None:
    """The tables of a layer that a text of SQL asks for, and what they read, by the names that SQL
    has for them; all where none is given. Spark takes half a second for each."""
    texts = {_known(each, layer): each.text for each in sheets(layer)}
    for name in texts if asked is None else _needed(asked, texts):
        engine.make(name, texts[name])


def _needed(asked: str, texts: Mapping[str, str]) -> list[str]:
    """Names that stand in a text, or in the texts of those that do, in their order."""
    found, left = set[str](), [asked]
    while left:
        words = set(re.findall(r"\w+", left.pop()))
        new = (words & texts.keys()) - found
        found |= new
        left += [texts[name] for name in new]
    return [name for name in texts if name in found]


def _known(each: Sheet, layer: str) -> str:
    return f"gold_{each.name}" if layer == GOLD and not each.shared else each.name


def make_silver(engine: Engine, folder: Path, asked: str | None = None) -> None:
    """Silver tables of the bronze in a folder: all, or those that are asked for as of `make`."""
    define_events(engine, [folder])
    make(engine, SILVER, asked)


def put(engine: Engine, layer: str, name: str, rows: Sequence[Row]) -> None:
    """A table with these rows, as if its statement had made it; what they do not say is NULL."""
    put_typed(engine, name, sheet(layer, name).types, rows)


def put_silver(engine: Engine, given: Mapping[str, Sequence[Row]]) -> None:
    """All silver tables and the verdicts, with rows by "silver" and their name."""
    for each in sheets(SILVER):
        if not each.shared:
            put(engine, SILVER, each.name, given.get(f"silver {each.name}", []))
    put(engine, JUDGING, VERDICTS, given.get("silver verdicts", []))


def put_typed(engine: Engine, name: str, types: dict[str, str], rows: Sequence[Row]) -> None:
    """A table with these rows."""
    columns = ", ".join(
        column if kind == "VARCHAR" else f"CAST({column} AS {kind}) AS {column}"
        for column, kind in types.items()
    )
    values = ",\n".join(
        f"({', '.join(_literal(row.get(column)) for column in types)}, {number})"
        for number, row in enumerate(rows or [{}])
    )
    names = ", ".join(types)
    only = "" if rows else "WHERE put_as < 0"
    sql = f"SELECT {columns}\nFROM (VALUES\n{values}\n) AS t({names}, put_as)\n{only}"
    if isinstance(engine, Spark) and len(rows) <= FEW:
        engine.drop([name])
        engine.session.sql(sql).createOrReplaceTempView(name)
    else:
        engine.make(name, sql)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()
