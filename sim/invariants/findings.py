"""What checkers say, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias

Row: TypeAlias = Any
"""An `ottla.sim.history.Event` of a kind whose columns are known to be there."""

ACKS_ALL = -1
"""The one setting of acks under which an acknowledged record may not be lost (mission-A1)."""


class Anomaly(NamedTuple):
    """An invariant that does not hold, and the row that shows it."""

    invariant: str
    """Its id, such as `sim-I01`."""
    eid: int
    """The first row at which it is seen; `History.rows[eid]`."""
    text: str
    """What is wrong, with the numbers."""

    def __str__(self) -> str:
        return f"{self.invariant} at row {self.eid}: {self.text}"


class AnomalyError(BaseException):
    """Ends a run at the first anomaly that is seen online.

    Rows are made deep inside of nodes, which handle every Exception as a broken node; not this one.
    """

    def __init__(self, anomaly: Anomaly):
        super().__init__(str(anomaly))
        self.anomaly = anomaly


class Rows(Protocol):
    """Where rows come from as they happen: a `History`, or a finished one told again."""

    def listen(self, kinds: Iterable[str], listener: Callable[[Row], None]) -> None:
        """Call `listener` with each coming row of these kinds."""


class Findings:
    """The first anomaly of each invariant, in the order in which they were seen."""

    __slots__ = ("_stop", "first")

    def __init__(self, *, stop: bool = False):
        self.first: dict[str, Anomaly] = {}
        self._stop = stop

    def report(self, invariant: str, eid: int, text: str) -> None:
        """An invariant does not hold. Raises AnomalyError if the run is to end here."""
        if invariant not in self.first:
            self.first[invariant] = anomaly = Anomaly(invariant, eid, text)
            if self._stop:
                raise AnomalyError(anomaly)
