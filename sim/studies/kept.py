"""The plan that a study's folder was begun with, and what may have become another since.

A study is gone on with if it is the same in all that runs and tables depend on. What only the
report depends on (title, question, answer, tables, charts, worst) may be another. There may also be
more seeds: runs are numbered seed by seed, so those of the seeds that are new come behind all
others, and only the last wave, where it was not full, is made again.
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
"""Parts of a plan by the words of people."""


class Kept(NamedTuple):
    """What the study that lies in a folder was asked for, if the command does not say."""

    seeds: int
    share: float
    wave: int


def kept(root: Path) -> Kept | None:
    """What the plan in that folder says; None where there is none, or none that can be read: what
    is wrong with it is said when the study is begun."""
    try:
        told = json.loads((root / PLAN).read_text(encoding="utf-8"))
        found = Kept(int(told[SEEDS]), float(told["share"]), int(told["wave"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return found if found.seeds > 0 and found.wave > 0 else None


def read_object(path: Path, wrong: str) -> dict[str, Any]:
    """What a file of ours holds. Raises `StudyError`, which says what is `wrong` if it does not."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise StudyError(f"{path} {wrong}")
    return found


def check_same(root: Path, found: Mapping[str, Any], told: Mapping[str, Any], study: Study) -> None:
    """Raises `StudyError` where the plan that was `found` is not that of this study, or has more
    seeds than it is `told` to have."""
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
    """In what the study that was found, by its text, runs something else than this one."""
    try:
        before = parse(found) if isinstance(found, str) else None
    except StudyError:
        before = None
    if before is None:
        return [TEXT]
    decides = before.decides
    return [name for name, value in study.decides.items() if decides[name] != value]
