"""The plan with which a study's folder was begun, and what of it may have changed since.

A study can be continued if all is the same that runs and tables depend on. What only the report
depends on (title, question, answer, tables, charts, worst) may change. There may also be more
seeds: runs are numbered seed by seed, so the runs of new seeds come after all others, and only the
last wave is made again if it was not full.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ottla.sim.studies.study import Study, StudyError, parse

PLAN = "study.json"
SEEDS = "seeds"
TEXT = "study"
FOR_PEOPLE = "commit"
_CALLED = {"versions": "the code of Ottla"}
"""The names of parts of a plan in messages."""


class Kept(NamedTuple):
    """The options of the study in a folder, for those that the command does not give."""

    seeds: int
    share: float
    wave: int


def kept(root: Path) -> Kept | None:
    """The plan in that folder; None: there is none, or it cannot be read. What is wrong with it is
    reported when the study begins."""
    try:
        told = json.loads((root / PLAN).read_text(encoding="utf-8"))
        found = Kept(int(told[SEEDS]), float(told["share"]), int(told["wave"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return found if found.seeds > 0 and found.wave > 0 else None


def read_object(path: Path, wrong: str) -> dict[str, Any]:
    """The content of one of Ottla's files. Raises `StudyError`, which says what is `wrong` if it is
    invalid."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise StudyError(f"{path} {wrong}")
    return found


def check_same(root: Path, found: Mapping[str, Any], told: Mapping[str, Any], study: Study) -> None:
    """Raises `StudyError` if the plan that was `found` is not that of this study, or has more seeds
    than `told`."""
    other = [
        _CALLED.get(key, key)
        for key in told
        if key not in {FOR_PEOPLE, TEXT, SEEDS} and found.get(key) != told[key]
    ]
    text = found.get(TEXT)
    if text != told[TEXT]:
        other = [*_other_runs(text, study), *other]
    seeds = found.get(SEEDS)
    if not isinstance(seeds, int) or seeds < 1:
        other.append(SEEDS)
    if other:
        raise StudyError(
            f"{root} holds another study: {', '.join(other)} "
            f"differ{'s' if len(other) == 1 else ''}; name another folder"
        )
    if found[SEEDS] > told[SEEDS]:
        raise StudyError(
            f"{root} holds this study with {found[SEEDS]} seeds; ask for as many, or for more, "
            "or name another folder"
        )


def _other_runs(found: object, study: Study) -> list[str]:
    """What the found study, given by its text, runs differently from this one."""
    try:
        before = parse(found) if isinstance(found, str) else None
    except StudyError:
        before = None
    if before is None:
        return [TEXT]
    decides = before.decides
    return [name for name, value in study.decides.items() if decides[name] != value]
