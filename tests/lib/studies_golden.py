"""Runs that are kept as Parquet: what the tables say of them does not change with the simulator.

OTTLA_REWRITE=golden    write down anew what the tables say of the runs that are kept
OTTLA_REWRITE=runs      simulate and keep the runs anew, too
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ottla.sim.history.history import COLUMNS, Event
from ottla.sim.studies import bronze
from ottla.sim.studies.bronze import Work, histories
from ottla.sim.studies.study import Study, parse
from studies_cases import Row, projected, table

FOLDER = Path(__file__).parents[1] / "studies" / "data"
RUNS = FOLDER / "runs.parquet"
NUMBERS = FOLDER / "golden.txt"
REWRITE = os.environ.get("OTTLA_REWRITE", "")


def study() -> Study:
    """What was run."""
    return parse((FOLDER / "golden.toml").read_text(encoding="utf-8"))


def keep_runs() -> None:
    """Simulate the study and keep it."""
    import pyarrow as pa
    from pyarrow import parquet

    told = study()
    work = Work(told.text, 0, 1.0)
    batches = list(histories(work, range(told.seeds * len(told.variants))))
    rows = pa.Table.from_batches(batches, schema=bronze.schema())
    parquet.write_table(rows, RUNS, compression="zstd", compression_level=19)


@cache
def kept() -> dict[int, list[Event]]:
    """The histories of the runs that are kept."""
    from pyarrow import parquet

    found: dict[int, list[Event]] = {}
    for row in parquet.read_table(RUNS).to_pylist():
        if row["kind"] not in bronze.KINDS:
            events = found.setdefault(row["run_id"], [])
            events.append(Event(**{name: row[name] for name in COLUMNS}))
    return found


def told(name: str, rows: Sequence[Row]) -> str:
    """A table as text that `studies_cases.tables` reads."""
    if not rows:
        return f"{name}\n| nothing |\n"
    cells = [list(rows[0]), *(list(map(_cell, row.values())) for row in projected(rows, rows[0]))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return f"{name}\n" + "".join(_lines(cells, widths))


def _lines(cells: list[list[str]], widths: list[int]) -> Iterator[str]:
    for row in cells:
        yield f"| {' | '.join(map(str.ljust, row, widths))} |\n"


def _cell(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def written(text: str) -> dict[str, list[Row]]:
    """What `told` wrote, by the name of the table."""
    blocks = (block.splitlines() for block in text.split("\n\n") if block.strip())
    return {name: table(rows) for name, *rows in blocks}
