"""The judge: a verdict over one history.

`attach` lets the online checks see a run as it happens; `judged_at_the_end` does the rest. `judge`
takes a finished history from any source, replays it to the same online checks and does the same
rest. So a verdict depends only on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ottla.sim.history.history import KINDS, Event
from ottla.sim.invariants.findings import Anomaly, Findings, Row, Rows
from ottla.sim.invariants.in_sync import counted
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.invariant import Place, Watcher
from ottla.sim.invariants.losses import Losses, losses
from ottla.sim.invariants.mutants import NO_CHECKER_MUTANTS, CheckerMutant, CheckerMutants
from ottla.sim.invariants.numbers import (
    ACKED_SHARE,
    LONGEST_GAP,
    NOT_JUDGED,
    acked_share,
    longest_gap,
)
from ottla.sim.invariants.registry import INVARIANTS
from ottla.sim.invariants.resent import Duplicate, copies
from ottla.sim.plugins.own import OwnInvariant


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a history shows."""

    anomalies: tuple[Anomaly, ...]
    """The first violation of each invariant, in the order of their rows."""
    losses: tuple[Losses, ...]
    """What was acknowledged and is lost, by acks; with acks 0 and 1 that is no anomaly."""
    duplicates: tuple[Duplicate, ...]
    """Every second copy in the log, and its cause."""
    numbers: dict[str, int]
    """Figures that are only measured."""

    @property
    def broken(self) -> frozenset[str]:
        """Ids of the invariants that do not hold."""
        return frozenset(anomaly.invariant for anomaly in self.anomalies)


def attach(
    rows: Rows, *, stop: bool = False, mutants: CheckerMutants = NO_CHECKER_MUTANTS
) -> Findings:
    """Let the online checks see every new row. With `stop` the first anomaly ends the run: it is
    raised as AnomalyError out of `History.add`."""
    findings = Findings(stop=stop)
    watchers: dict[type[Watcher], Watcher] = {}
    for row in INVARIANTS:
        if row.place is Place.ONLINE and isinstance(row.judge, type) and row.judge not in watchers:
            watchers[row.judge] = row.judge(findings, mutants)
            watchers[row.judge].listen(rows)
    return findings


def judge(events: Sequence[Event], mutants: CheckerMutants = NO_CHECKER_MUTANTS) -> Verdict:
    """The verdict over a finished history."""
    if CheckerMutant.SKIPPED_LAST in mutants:
        events = events[:-1]
    retold = Retold()
    findings = attach(retold, mutants=mutants)
    retold.tell(events)
    index = Index(events, mutants)
    for anomaly in judged_at_the_end(index):
        findings.report(*anomaly)
    return Verdict(
        tuple(sorted(findings.first.values(), key=lambda anomaly: anomaly.eid)),
        losses(index),
        tuple(copies(index)),
        {
            ACKED_SHARE: acked_share(index),
            LONGEST_GAP: longest_gap(index),
            NOT_JUDGED: counted(index.rows["insync"]).unjudged,
        },
    )


def judged_at_the_end(index: Index) -> Iterator[Anomaly]:
    """The first anomaly of each invariant that is not judged online."""
    for row in INVARIANTS:
        if row.place is Place.END and row.judge is not None and not isinstance(row.judge, type):
            yield from islice(row.judge(index), 1)


def judged_by(own: OwnInvariant, index: Index) -> Iterator[Anomaly]:
    """The first anomaly of an invariant of a plugin. Raises whatever that raises, and `TypeError`
    if it yields no row and text."""
    for found in islice(own.function(index), 1):
        match found:
            case (Event(eid=eid), str(text)):
                yield Anomaly(own.id, eid, text)
            case _:
                raise TypeError(f"{own.id} yields a row and a text, not {found!r}")


class Retold:
    """Replays a finished history to listeners, after all of them listen."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Callable[[Row], None]]] = {kind: [] for kind in KINDS}

    def listen(self, kinds: Iterable[str], listener: Callable[[Row], None]) -> None:
        """As `History.listen`."""
        for kind in kinds:
            self._listeners[kind].append(listener)

    def tell(self, events: Iterable[Event]) -> None:
        """Pass every row to its listeners."""
        listeners = self._listeners
        for event in events:
            for listener in listeners[event.kind]:
                listener(event)
