"""What a checker says when an invariant does not hold."""

from __future__ import annotations

from typing import NamedTuple


class Anomaly(NamedTuple):
    """One invariant that does not hold, where it first showed."""

    invariant: str
    """Its id with its source, such as `sim-I09`; `sim-I00` is an invariant of the broker itself."""
    eid: int
    """The event that showed it."""
    text: str
    """One sentence with the numbers that contradict each other."""

    def __str__(self) -> str:
        return f"{self.invariant} at event {self.eid}: {self.text}"


class AnomalyFound(Exception):  # noqa: N818 - it names what it is
    """Raised by a checker that watches a run: the run ends here."""

    def __init__(self, anomaly: Anomaly):
        super().__init__(str(anomaly))
        self.anomaly = anomaly
