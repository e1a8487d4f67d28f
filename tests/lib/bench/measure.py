"""What the items of the suite share: rounds, outcomes, and where they are written."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


@dataclass(slots=True)
class Outcome:
    """One line of the table: a target and what was measured."""

    name: str
    measured: float
    unit: str
    target: float | None = None
    """None: for information only."""
    at_least: bool = False
    """The target is a floor; otherwise a ceiling."""
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        return self.measured >= self.target if self.at_least else self.measured <= self.target


@dataclass(slots=True)
class Report:
    """What one item found: outcomes, and where time goes where a target is missed."""

    item: str
    outcomes: list[Outcome]
    profiles: dict[str, str] = field(default_factory=dict)


def interleave(
    rounds: int, sides: Mapping[str, Callable[[], dict[str, float]]]
) -> dict[str, list[dict[str, float]]]:
    """Measure every side once per round, one after the other, so that all see the same machine."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for number in range(rounds):
        names = list(sides)
        for name in names if number % 2 == 0 else reversed(names):
            found[name].append(sides[name]())
    return found


def middle(rounds: Sequence[Mapping[str, float]], value: str) -> float:
    """Median over the rounds."""
    return median(each[value] for each in rounds)


def ratio(
    above: Sequence[Mapping[str, float]], below: Sequence[Mapping[str, float]], value: str
) -> float:
    """Median of the ratios round by round: neighbours in time share their disturbances."""
    return median(a[value] / b[value] for a, b in zip(above, below, strict=True))


def commit() -> str:
    """The commit that was measured, with a plus when the tree differs from it."""

    def git(*arguments: str) -> str:
        run = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return run.stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("diff", "--stat", "HEAD") else "")


def write(reports: Sequence[Report], path: Path, *, quick: bool) -> None:
    """Append one JSON line per outcome."""
    path.parent.mkdir(parents=True, exist_ok=True)
    common = {
        "commit": commit(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "quick": quick,
    }
    with path.open("a") as file:
        for report in reports:
            for outcome in report.outcomes:
                line = common | {"item": report.item} | asdict(outcome) | {"met": outcome.met}
                file.write(json.dumps(line) + "\n")
