"""Judging: the SQL of the invariants over the histories of many runs, compared with Python's
verdicts.

Two implementations of every invariant read the same rows. If they differ, one of them is wrong, and
no figure of the study can be trusted. So each difference is reported with the run, the invariant
and the command that repeats the run. So is a difference from the run's own verdict: that is found
while the run goes on (`ottla.sim.run`), from the same rows in another way, and figures are made
from it.

The statements share views, which are made once for all of them, and are separate queries: as one
query, a UNION ALL, they took Spark more work (planning grows faster than the text). Their results
are small, a row for each run and broken invariant, so they are stored by the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ottla.sim.invariants import statements
from ottla.sim.invariants.registry import INVARIANTS
from ottla.sim.studies.engine import Engine
from ottla.sim.studies.events import define_events
from ottla.sim.studies.lake import making
from ottla.sim.studies.names import EVENTS, VERDICTS
from ottla.sim.studies.order import in_order
from ottla.sim.studies.sheets import JUDGING, sheet
from ottla.sim.studies.study import Study
from ottla.sim.studies.worst import command

SQL, PYTHON, BOTH, THE_RUN = "SQL", "Python", "SQL and Python", "the run"
"""Which side finds an invariant broken."""


class Difference(NamedTuple):
    """SQL, Python and the run itself disagree about an invariant in a run."""

    run_id: int
    seed: int
    variant: int
    invariant: str
    finder: str
    """Which side finds it broken. *SQL* or *Python*: the other does not. *SQL and Python*: the run
    itself is ok. *the run*: it noticed what neither of them finds in its history."""

    def told(self, study: Study) -> str:
        """The difference in one line, with the command that repeats the run."""
        run, name = f"run {self.run_id} (variant {self.variant})", self.invariant
        said = {
            SQL: f"SQL finds {name} broken in {run}, Python does not",
            PYTHON: f"Python finds {name} broken in {run}, SQL does not",
            BOTH: f"SQL and Python find {name} broken in {run}, whose own verdict is ok",
            THE_RUN: f"{run} noticed that {name} is broken, SQL and Python do not find it",
        }
        again = command(study.variants[self.variant], self.seed, swarm=study.swarm)
        return f"{said[self.finder]}: {again}"


def judge_waves(engine: Engine, folders: Sequence[Path], into: Path) -> int:
    """Write table `verdicts` of the judged runs in these folders of bronze; returns its number of
    rows. Makes and drops table `ev` and the views of the invariants."""
    define_events(engine, folders, judged=True)
    views = dict(statements.views())
    found: dict[str, list[dict[str, Any]]] = {}

    def do(name: str) -> None:
        if name in views:
            engine.make(name, views[name])
        else:
            found[name] = engine.rows(verdict(name))

    try:
        for _ in in_order(engine, views | {each: verdict(each) for each in judged()}, do):
            pass
    finally:
        engine.drop([EVENTS, *views])
    rows = [row for each in judged() for row in found[each]]
    _keep(rows, into, engine.described)
    return len(rows)


def verdict(invariant: str) -> str:
    """The query for the rows of table `verdicts` about one invariant."""
    query = statements.queries()[invariant]
    rows = f"SELECT run_id, '{invariant}' AS invariant, n FROM (\n{query}\n) q"
    return f"WITH found AS (\n{rows}\n)\n{sheet(JUDGING, VERDICTS).text}"


def _keep(rows: Sequence[dict[str, Any]], into: Path, engine: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"BIGINT": pa.int64(), "VARCHAR": pa.string()}
    types = sheet(JUDGING, VERDICTS).types
    schema = pa.schema([(name, kinds[kind]) for name, kind in types.items()])
    with making(into, engine) as folder:
        parquet.write_table(pa.Table.from_pylist(rows, schema), folder / "part-0.parquet")


def judged() -> tuple[str, ...]:
    """Ids of the invariants that judge runs; the others are figures."""
    return tuple(each.id for each in INVARIANTS if each.judge is not None)


# A run that did not settle noticed sim-I31 by that, and its history does not show it: checkers look
# at runs that settled. `lost` is known only for those.
DIFFERENCES = f"""\
SELECT d.run_id, r.seed, r.variant, d.invariant, d.finder
FROM (
  SELECT run_id, invariant,
    CASE WHEN MAX(python) = 1 THEN '{PYTHON}' ELSE '{SQL}' END AS finder
  FROM (
    SELECT run_id, invariant, 1 AS python FROM python_verdicts
    UNION ALL
    SELECT run_id, invariant, 0 AS python FROM verdicts
  ) both_sides
  GROUP BY run_id, invariant
  HAVING COUNT(DISTINCT python) = 1
  UNION ALL
  SELECT v.run_id, v.invariant, '{BOTH}' AS finder
  FROM verdicts v
  JOIN python_verdicts p ON p.run_id = v.run_id AND p.invariant = v.invariant
  JOIN runs o ON o.run_id = v.run_id AND o.verdict = 'ok'
  UNION ALL
  SELECT n.run_id, n.noticed AS invariant, '{THE_RUN}' AS finder
  FROM runs n
  LEFT JOIN python_verdicts p ON p.run_id = n.run_id AND p.invariant = n.noticed
  LEFT JOIN verdicts v ON v.run_id = n.run_id AND v.invariant = n.noticed
  WHERE n.judged AND p.run_id IS NULL AND v.run_id IS NULL
    AND n.noticed IN ({", ".join(f"'{each}'" for each in judged())})
    AND (n.noticed <> 'sim-I31' OR n.lost IS NOT NULL)
) d
JOIN runs r ON r.run_id = d.run_id
ORDER BY d.run_id, d.invariant"""


def differences(engine: Engine, limit: int = 20) -> list[Difference]:
    """Where tables `verdicts`, `python_verdicts` and `runs` differ, the first `limit`."""
    return [Difference(**row) for row in engine.rows(f"{DIFFERENCES}\nLIMIT {limit}")]


def differences_told(engine: Engine, study: Study, most: int = 3) -> str:
    """The first differences in full and how many more there are; empty: none."""
    found = differences(engine, most)
    told = "; ".join(each.told(study) for each in found)
    if len(found) < most:
        return told
    (counted,) = engine.rows(f"SELECT COUNT(*) AS n FROM (\n{DIFFERENCES}\n) d")
    more = int(counted["n"]) - most
    return f"{told}; and {more:,} more" if more else told
