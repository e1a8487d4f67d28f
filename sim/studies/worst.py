"""The worst runs, each with the command that repeats it.

A study may say what worst means. Otherwise the order is: runs that failed, runs that lost
acknowledged records, runs with an outage after which no waiting record was served, runs that stood
still for longest. Runs that broke have no figures and are reported separately. One run of each
variant is named, and then further ones while there is room, but none with the history of one that
is named already: three runs are three stories.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.sim.settings.settings import RunConfig
from ottla.sim.studies.engine import Engine
from ottla.sim.studies.findings import Worst
from ottla.sim.studies.sentences import filled
from ottla.sim.studies.study import Answer, Study, StudyError, Variant

MOST = 3
DEFAULT = Answer(
    """
SELECT r.run_id, r.verdict, COALESCE(': ' || COALESCE(r.reason, r.noticed), '') AS told_why,
  CASE WHEN r.lost IS NULL THEN 'ended before its logs were read'
    WHEN r.lost = 1 THEN '1 acknowledged record lost'
    ELSE CAST(r.lost AS STRING) || ' acknowledged records lost' END AS told_lost,
  r.lost = 0 AS none_lost, c.looked, c.lossy,
  COALESCE(f.longest_us, 0) / 1E3 AS longest_ms,
  CASE WHEN f.gave_up > 0 THEN 1 ELSE 0 END AS in_vain, f.gave_up, f.at_us, f.partition
FROM runs r
LEFT JOIN (
  SELECT w.run_id, w.total_us AS longest_us, w.gave_up, w.lost_us AS at_us, w.partition
  FROM (
    SELECT o.run_id, o.total_us, o.lost_us, o.partition, o.gave_up,
      ROW_NUMBER() OVER (
        PARTITION BY o.run_id ORDER BY o.gave_up DESC, o.total_us DESC, o.term
      ) AS place
    FROM (
      SELECT run_id, total_us, lost_us, partition, term,
        CASE WHEN ok_us IS NULL AND gave_up > 0 THEN gave_up ELSE 0 END AS gave_up
      FROM failovers
    ) o
    WHERE o.gave_up > 0 OR o.total_us IS NOT NULL
  ) w
  WHERE w.place = 1
) f ON f.run_id = r.run_id
CROSS JOIN (
  SELECT COUNT(lost) AS looked, SUM(CASE WHEN lost > 0 THEN 1 ELSE 0 END) AS lossy
  FROM runs
  WHERE broke = 0
) c
WHERE r.broke = 0
ORDER BY CASE WHEN r.verdict = 'failed' THEN 0 ELSE 1 END, COALESCE(r.lost, 0) DESC,
  COALESCE(f.gave_up, 0) DESC, COALESCE(f.longest_us, 0) DESC, r.run_id
""",
    "verdict {verdict}{told_why}; {told_lost}{none_lost: (any in {lossy:,} of {looked:,} "
    "{looked:run|runs}; {lossy:bounded looked} runs lose any)|}; {in_vain:no record that "
    "waited for a leader was acknowledged, {gave_up:,} {gave_up:was|were} given up"
    "|longest without a leader that serves: {longest_ms:,.0f} ms}",
)


def worst_runs(study: Study, engine: Engine) -> tuple[Worst, ...]:
    """The worst runs, the worst first. The engine knows the silver and gold tables. Raises
    `StudyError` if the study's own SQL does not name runs, or its text uses an unknown column."""
    asked = study.worst or DEFAULT
    variants, wanted = len(study.variants), MOST
    while True:
        kept = _kept(engine, asked.sql, variants, wanted)
        stories = _stories(engine, kept, fill=len(kept.firsts) < wanted)
        if len(stories) == MOST or len(kept.rows) < wanted:
            return tuple(_worst(study, row, run, asked.text) for row, run in stories)
        wanted *= 4  # some have the same history: that is rare, but then it is true of many


class _Kept(NamedTuple):
    """The wanted number of rows of the query."""

    rows: dict[int, Mapping[str, Any]]
    """Rows by run, the worst first."""
    firsts: dict[int, int]
    """The worst run of each variant."""


def _kept(engine: Engine, sql: str, variants: int, wanted: int) -> _Kept:
    """The worst run of each variant, for as many variants as are wanted, and as many of the others.
    No more rows are kept, even if a million runs of one variant come first."""
    kept = _Kept({}, {})

    def enough(row: Mapping[str, Any]) -> bool:
        if "run_id" not in row:
            raise StudyError("worst.sql: it gives no run_id")
        run = _whole(row, "run_id")
        if run is None:
            raise StudyError("worst.sql: run_id is NULL; the number of a run is expected")
        first = kept.firsts.setdefault(run % variants, run) == run
        if first or len(kept.rows) - len(kept.firsts) < wanted:
            kept.rows.setdefault(run, row)
        return len(kept.firsts) == min(wanted, variants) and len(kept.rows) >= wanted

    engine.until(sql, enough)
    return kept


def _whole(row: Mapping[str, Any], name: str) -> int | None:
    """The whole number in a column; None: NULL, or there is no such column."""
    value = row.get(name)
    if value is None:
        return None
    try:
        if value == int(value):
            return int(value)
    except (TypeError, ValueError, OverflowError):  # not a number, or not finite
        pass
    raise StudyError(f"worst.sql: {name} is {value!r}; a whole number is expected")


def _stories(
    engine: Engine, kept: _Kept, *, fill: bool
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Those whose histories differ, the worst first, each with its row of table runs. One of each
    variant is taken before others `fill` up the rest."""
    firsts = list(kept.firsts.values())
    taken = set(firsts)
    further = [run for run in kept.rows if fill and run not in taken]
    if not firsts:
        return []
    runs = _runs(engine, [*firsts, *further])
    told: dict[Any, int] = {}
    for number in (*firsts, *further):
        if number not in runs:
            raise StudyError(f"worst.sql: run_id is {number}; there is no such run")
        digest = runs[number]["digest"]
        if len(told) < MOST:
            told.setdefault(number if digest is None else digest, number)
    return [(row, runs[run]) for run, row in kept.rows.items() if run in told.values()]


def _runs(engine: Engine, numbers: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    """The rows of these runs in table runs."""
    listed = ", ".join(map(str, numbers))
    found = engine.rows(
        f"SELECT run_id, seed, variant, digest FROM runs WHERE run_id IN ({listed})"
    )
    return {int(row["run_id"]): row for row in found}


def _worst(study: Study, row: Mapping[str, Any], run: Mapping[str, Any], text: str) -> Worst:
    variant = study.variants[int(run["variant"])]
    why = filled(text, row, "worst")
    digest = run["digest"]
    return Worst(
        int(run["run_id"]),
        int(run["seed"]),
        variant.label,
        why,
        command(variant, int(run["seed"]), swarm=study.swarm),
        "" if digest is None else int(digest).to_bytes(8, "big", signed=True).hex(),
        _whole(row, "at_us"),
        _whole(row, "partition") or 0,
    )


def command(variant: Variant, seed: int, *, swarm: bool, verb: str = "run") -> str:
    """The shell command that repeats a run: `ottla sim run`, or with another verb a page about it.

    >>> from ottla.sim.studies.study import Variant
    >>> config = RunConfig(acks=1, faults="kill power")
    >>> command(Variant(0, {}, config, "the leader is killed", "", ""), 7, swarm=False)
    "ottla sim run --seed 7 --set acks=1 --set 'faults=kill power' --failure 'the leader is killed'"
    """
    words = ["ottla", "sim", verb, *(["--seed", str(seed)] if verb == "run" else [str(seed)])]
    for name, value in _settings(variant.config):
        words += ["--set", f"{name}={value}"]
    if not swarm:
        words += ["--whole"] if variant.failure is None else ["--failure", variant.failure]
    return shlex.join(words)


def _settings(config: RunConfig) -> list[tuple[str, str]]:
    """Settings that were given or are not at their default, as `--set` takes them."""
    found = []
    for line in config.told().splitlines():
        name = line.partition(" = ")[0]
        value = getattr(config, name)
        found.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    return found
