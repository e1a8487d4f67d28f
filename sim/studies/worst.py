"""Which runs are worst to who asked, each with the command that does it again.

A study may say what worst is; otherwise it is what failed, then what lost acknowledged records,
then an outage in which nobody who had waited was served, then what stood still for longest. What
broke has no figures and is told by itself. Of each variant one run is named at most, and none whose
history is that of one named already: three runs are three stories.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.sim.settings import RunConfig
from ottla.sim.studies.engine import Engine
from ottla.sim.studies.findings import Worst
from ottla.sim.studies.sentences import filled
from ottla.sim.studies.study import Answer, Study, StudyError, Variant

MOST = 3
DEFAULT = Answer(
    """
SELECT r.run_id, r.verdict,
  CASE WHEN r.lost IS NULL THEN 'ended before anybody looked what was lost'
    WHEN r.lost = 1 THEN '1 acknowledged record lost'
    ELSE CAST(r.lost AS STRING) || ' acknowledged records lost' END AS told_lost,
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
WHERE r.broke = 0
ORDER BY CASE WHEN r.verdict = 'failed' THEN 0 ELSE 1 END, COALESCE(r.lost, 0) DESC,
  COALESCE(f.gave_up, 0) DESC, COALESCE(f.longest_us, 0) DESC, r.run_id
""",
    "verdict {verdict}; {told_lost}; {in_vain:nobody who had waited for a leader was "
    "served, {gave_up:,} {gave_up:record was|records were} given up"
    "|longest without a leader that serves: {longest_ms:,.0f} ms}",
)


def worst_runs(study: Study, engine: Engine) -> tuple[Worst, ...]:
    """The worst runs, the worst first. The engine knows the silver and gold tables. Raises
    `StudyError` when the study's own SQL does not name runs, or its text asks for another column.
    """
    asked = study.worst or DEFAULT
    variants, wanted = len(study.variants), MOST
    while True:
        chosen = _chosen(engine, asked.sql, variants, wanted)
        found = _told(study, engine, chosen, asked.text)
        if len(found) == MOST or len(chosen) < wanted:
            return found
        wanted *= 4  # some of them tell the same story: it is seldom so, and then it is for many


def _chosen(engine: Engine, sql: str, variants: int, wanted: int) -> list[Mapping[str, Any]]:
    """The worst run of each variant, for as many variants as are wanted: no more rows are kept, be
    there a million runs of one variant first."""
    chosen: dict[int, Mapping[str, Any]] = {}

    def enough(row: Mapping[str, Any]) -> bool:
        if "run_id" not in row:
            raise StudyError("worst.sql: it gives no run_id")
        run = _whole(row, "run_id")
        if run is None:
            raise StudyError("worst.sql: run_id is NULL; the number of a run is expected")
        chosen.setdefault(run % variants, row)
        return len(chosen) == min(wanted, variants)

    engine.until(sql, enough)
    return list(chosen.values())


def _whole(row: Mapping[str, Any], name: str) -> int | None:
    """The whole number in a column; None for NULL, and where there is no such column."""
    value = row.get(name)
    if value is None:
        return None
    try:
        if value == int(value):
            return int(value)
    except (TypeError, ValueError, OverflowError):  # no number, not finite
        pass
    raise StudyError(f"worst.sql: {name} is {value!r}; a whole number is expected")


def _told(
    study: Study, engine: Engine, chosen: Sequence[Mapping[str, Any]], text: str
) -> tuple[Worst, ...]:
    """Those of them whose histories differ."""
    if not chosen:
        return ()
    numbers = ", ".join(str(int(row["run_id"])) for row in chosen)
    runs = {
        int(row["run_id"]): row
        for row in engine.rows(
            f"SELECT run_id, seed, variant, digest FROM runs WHERE run_id IN ({numbers})"
        )
    }
    told: dict[Any, Worst] = {}
    for each in chosen:
        number = int(each["run_id"])
        if number not in runs:
            raise StudyError(f"worst.sql: run_id is {number}; there is no such run")
        run = runs[number]
        story = run["run_id"] if run["digest"] is None else run["digest"]
        if len(told) < MOST and story not in told:
            told[story] = _worst(study, each, run, text)
    return tuple(told.values())


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
    """What does a run again, in a shell: `ottla sim run`, or with another verb that page about it.

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
    """Those that were said or are not at their default, as `--set` takes them."""
    found = []
    for line in config.told().splitlines():
        name = line.partition(" = ")[0]
        value = getattr(config, name)
        found.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    return found
