"""From the tables of a study to its findings: the answer, the content of the report, the bill.

All of it comes from queries on the engine, which knows the silver and gold tables by name. Rows and
bytes of the bill are sums over the folders, so they are the same after a kill and a resume. Its
seconds are those that were stored when a process ended. Stages without a folder, agree and report,
count once, when they were first done.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic

from ottla.sim.studies import names
from ottla.sim.studies.charts import Chart
from ottla.sim.studies.engine import Engine
from ottla.sim.studies.findings import (
    Breakdown,
    Findings,
    Rows,
    Stage,
    Table,
    chart_of,
    table_of,
)
from ottla.sim.studies.lake import Lake, Plan, cost
from ottla.sim.studies.origin import UNKNOWN, in_all, told_of
from ottla.sim.studies.sentences import answer
from ottla.sim.studies.study import ChartAsked, Study, StudyError
from ottla.sim.studies.worst import command as again
from ottla.sim.studies.worst import worst_runs

_COUNTED = """
SELECT COUNT(*) AS runs, SUM(CASE WHEN judged THEN 1 ELSE 0 END) AS judged, SUM(broke) AS broke
FROM runs"""
BREAKDOWNS = 10
"""How many of them are named."""
_BROKE = f"""
SELECT seed, variant, reason
FROM runs
WHERE broke = 1
ORDER BY run_id
LIMIT {BREAKDOWNS}"""
_BROKEN = """
SELECT p.invariant, COUNT(DISTINCT p.run_id) AS runs_in_which_it_is_broken,
  COUNT(DISTINCT p.variant) AS of_so_many_variants
FROM python_verdicts p
GROUP BY p.invariant
ORDER BY runs_in_which_it_is_broken DESC, p.invariant"""


def findings_of(lake: Lake, engine: Engine, command: str) -> Findings:
    """The findings of a finished study. Raises `StudyError` if its own SQL and texts do not fit
    each other."""
    begun = monotonic()
    plan, study = lake.plan, lake.plan.parsed
    counted = engine.rows(_COUNTED)[0]
    return Findings(
        name=study.name,
        title=study.title,
        question=study.question,
        answer=answer(study.answer, _asked(engine, study.answer.sql, "answer.sql")),
        text=study.text,
        command=command,
        seeds=plan.seeds,
        first=plan.first,
        variants=len(study.variants),
        runs=int(counted["runs"]),
        judged=int(counted["judged"]),
        share=plan.share,
        broke=int(counted["broke"]),
        verdicts=table_of("Invariants that are broken", engine.rows(_BROKEN)),
        tables=tuple(_tables(lake, engine)),
        charts=tuple(_chart(each, engine) for each in study.charts),
        worst=worst_runs(study, engine),
        breakdowns=tuple(_breakdowns(study, engine)),
        canary=_canary(lake),
        versions=_versions(plan, engine),
        stages=_all_stages(lake, begun),
    )


def _all_stages(lake: Lake, begun: float) -> tuple[Stage, ...]:
    """The cost of each stage, after the queries of the report."""
    lake.spend("report", monotonic() - begun, once=True)
    return stages(lake)


def _breakdowns(study: Study, engine: Engine) -> Iterable[Breakdown]:
    for row in engine.rows(_BROKE):
        variant = study.variants[int(row["variant"])]
        seed = int(row["seed"])
        told = again(variant, seed, swarm=study.swarm)
        yield Breakdown(seed, variant.label, row["reason"], told)


def _tables(lake: Lake, engine: Engine) -> Iterable[Table]:
    for each in lake.plan.parsed.tables:
        rows = _asked(engine, each.sql, f'table.sql ("{each.title}")')
        yield table_of(each.title, rows, each.note)


def _chart(asked: ChartAsked, engine: Engine) -> Chart:
    where = f'chart.sql ("{asked.title}")'
    rows = _asked(engine, asked.sql, where)
    try:
        return chart_of(asked.title, asked.kind, (asked.x, asked.y), rows)
    except KeyError as error:
        raise StudyError(
            f"{where}: no column {error}; series, x and y are expected, and low and high or neither"
        ) from None
    except (TypeError, ValueError) as error:
        raise StudyError(f"{where}: {error}; a number is expected") from None


def _asked(engine: Engine, sql: str, where: str) -> Rows:
    """The result of a query of the file. Raises the engine's error, with `where` in front."""
    try:
        return engine.rows(sql)
    except StudyError as error:
        raise StudyError(f"{where}: {error}") from None


def stages(lake: Lake) -> tuple[Stage, ...]:
    """The cost of each stage."""
    root, spent = lake.root, lake.spent()
    judged = root / "silver" / names.VERDICTS
    silver = [each for each in (root / "silver").glob("*") if each != judged]
    folders: dict[str, Iterable[Path]] = {
        "sweep": (root / "bronze").glob("wave=*"),
        "silver": (batch for each in silver for batch in each.glob("batch=*")),
        "judge": judged.glob("batch=*"),
        "agree": (),
        "gold": (root / "gold").glob("*"),
        "report": (),
    }
    return tuple(_stage(name, spent.get(name, 0.0), each) for name, each in folders.items())


def _stage(name: str, seconds: float, folders: Iterable[Path]) -> Stage:
    costs = [each for each in map(cost, folders) if each is not None]
    return Stage(
        name,
        seconds,
        sum(each.rows for each in costs),
        sum(each.bytes for each in costs),
        in_all(told_of(each.engine, each.commit) for each in costs),
    )


def _canary(lake: Lake) -> str:
    """What the report says of the canary: the same each time."""
    found = lake.canary()
    if found is None:
        return "its result is not stored"
    if not found.noticed:
        return f"{found.mutant} was not noticed"
    return f"{found.mutant} noticed by {found.invariant}"


def _versions(plan: Plan, engine: Engine) -> tuple[tuple[str, str], ...]:
    """Versions of what the figures depend on, and of what made the report."""
    try:
        arrow = version("pyarrow")
    except PackageNotFoundError:
        arrow = UNKNOWN
    return (
        ("report by", told_of(engine.described, plan.commit)),
        *plan.versions.items(),
        ("bronze", f"version {plan.schema}"),
        ("Python", platform.python_version()),
        ("pyarrow", arrow),
    )
