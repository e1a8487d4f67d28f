"""What checkers report, and what they get."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias

Row: TypeAlias = Any
"""An `ottla.sim.history.history.Event` of a kind that has the columns used."""

_NUMBERS = re.compile(r"\[?\d+(?:, \d+)*\]?")
_OF_MANY_KINDS = frozenset({"sim-I00", "sim-I31"})
ACKS_ALL = -1
"""The one setting of acks under which an acknowledged record may not be lost (promise-A1)."""


class Anomaly(NamedTuple):
    """An invariant that does not hold, and the row that shows it."""

    invariant: str
    """Its id, such as `sim-I01`."""
    eid: int
    """The first row that shows it; `History.rows[eid]`."""
    text: str
    """What is wrong, with the numbers."""

    def __str__(self) -> str:
        return f"{self.invariant} at row {self.eid}: {self.text}"

    @property
    def kind(self) -> str:
        """What two anomalies of the same kind have in common: the invariant. For an invariant with
        many kinds of anomalies also the text, without the numbers.

            >>> Anomaly("sim-I31", 7, "no node of [1, 2] leads partition 0 in the end").kind
            'sim-I31 no node of # leads partition # in the end'
            >>> Anomaly("sim-I02", 7, "value 3 is at offsets 1 and 4 of partition 0").kind
            'sim-I02'
        """
        if self.invariant not in _OF_MANY_KINDS:
            return self.invariant
        return f"{self.invariant} {_NUMBERS.sub('#', self.text)}"


class AnomalyError(BaseException):
    """Ends a run at the first anomaly that is seen online.

    Rows are added deep inside nodes, which treat every Exception as a failure of the node, so this
    is a BaseException.
    """

    def __init__(self, anomaly: Anomaly):
        super().__init__(str(anomaly))
        self.anomaly = anomaly


class Rows(Protocol):
    """A source of rows: a running `History`, or a finished one that is replayed."""

    def listen(self, kinds: Iterable[str], listener: Callable[[Row], None]) -> None:
        """Call `listener` with each new row of these kinds."""


class Findings:
    """The first anomaly of each invariant, in the order in which they were found."""

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
