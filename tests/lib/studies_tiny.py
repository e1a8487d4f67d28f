"""Studies small enough for a test: a run takes some 30 ms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.sim.studies.engine import Engine, open_engine
from ottla.sim.studies.lake import Lake
from ottla.sim.studies.pipeline import Pipeline, Progress
from ottla.sim.studies.plan import plan_of
from ottla.sim.studies.study import parse

SEEDS, WAVE, BATCH_ROWS = 4, 3, 1_000
"""Three waves of some 700 rows, the last one shorter; each a batch of its own."""
TINY = """
name = "tiny"
title = "A tiny study"
question = "Is anything lost?"
seeds = 4
[settings]
load_ms = 1000
records = 12
[grid]
acks = [1, -1]
[answer]
sql = "SELECT COUNT(*) AS runs FROM runs"
text = "{runs} runs."
"""


def study(
    out: Path,
    text: str = TINY,
    *,
    seeds: int = SEEDS,
    share: float | None = None,
    wave: int | None = WAVE,
    engine: Engine | None = None,
    told: Callable[[Progress], None] = lambda _: None,
    batch_rows: int = BATCH_ROWS,
) -> Pipeline:
    """A study that has been run, its engine still open; DuckDB and one process, if not said."""
    plan = plan_of(parse(text), seeds, 0, share, wave=wave, batch_rows=batch_rows)
    lake = Lake(out, plan)
    try:
        pipeline = Pipeline(lake, engine or open_engine("duckdb", jobs=1), told)
        pipeline.run()
    finally:
        lake.close()
    return pipeline


def contents(pipeline: Pipeline, table: str) -> list[dict[str, Any]]:
    """All rows of a table, in an order of their own, fractions to twelve digits."""
    rows = pipeline.engine.rows(f"SELECT * FROM {table}")
    return sorted(({name: _plain(each) for name, each in row.items()} for row in rows), key=repr)


def _plain(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value
