"""What an invariant is: a sentence, where it is judged, and by what (`registry.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from ottla.sim.invariants.findings import Anomaly, Findings, Rows
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.mutants import CheckerMutants


class Place(Enum):
    """Where an invariant is judged."""

    ONLINE = "online"
    END = "at the end"
    MEASURED = "measured"


class Watcher(Protocol):
    """Sees rows as they come, and reports the first violation of each invariant that it judges."""

    def __init__(self, findings: Findings, mutants: CheckerMutants) -> None: ...

    def listen(self, rows: Rows) -> None:
        """Listen to the kinds of rows that it needs."""


Check: TypeAlias = Callable[[Index], Iterator[Anomaly]]


@dataclass(frozen=True, slots=True)
class Invariant:
    """One row of the table."""

    id: str
    name: str
    """The name of a violation."""
    says: str
    """What must hold, in one sentence."""
    place: Place
    judge: type[Watcher] | Check | None
    """None: only measured, see `numbers.py`."""
