"""Durable steps: the places between enqueued, written, flushed, replicated, applied and answered,
and which faults met a replica there.

What a replica writes goes through stages, each of which may be its last:

| stage | from | to |
|---|---|---|
| enqueued | the turn has given it its place in the log | the store has it |
| written | the store has it | a sync begins that covers it |
| flush | the sync runs | it has ended |
| flushed | the sync has ended | the node does the next thing, such as telling its leader |
| replicated | a majority has the entry durably | the replica has applied it |
| answered | a produce request is decided | its answer is on the connection |

An entry that is durable here and not yet on a majority is *alone*. A step is a stage of one of
`KINDS`. A fault meets a step if a node dies there, or if a link of the node is cut, or its disk
stalled, when the step begins or ends.

`Steps` only counts; `probe.py` says what begins and ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias

from ottla.raft.types import NodeId

KINDS = (
    "records",
    "first entry",
    "command",
    "vote",
    "truncation",
    "snapshot taken",
    "snapshot installed",
)
"""What an append writes. A leader's first entry opens its term; a snapshot that is taken compacts
the log with the same write."""
WRITTEN, FLUSH, FLUSHED = "written", "flush", "flushed"
ENQUEUED = "records: enqueued"
ALONE = "entries: flushed, not replicated"
REPLICATED = "entries: replicated, not applied"
ANSWERED = "records: applied, not answered"
STEPS = (
    ENQUEUED,
    *(f"{kind}: {stage}" for kind in KINDS for stage in (WRITTEN, FLUSH, FLUSHED)),
    ALONE,
    REPLICATED,
    ANSWERED,
)
CRASH, CUT, STALL, PASSED = "crash", "cut", "stall", "passed"
FAULTS = (CRASH, CUT, STALL)
Met: TypeAlias = tuple[str, str]
"""A step, and a fault that met a replica there, or `PASSED`: how often any replica was there."""
MET: tuple[Met, ...] = tuple(
    (step, fault)
    for step in STEPS
    for fault in FAULTS
    if fault != STALL or not step.endswith(f": {FLUSHED}")
)
"""All that is asked for: a stall holds up a flush, and nothing of what is flushed."""


class Steps:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.counts: dict[Met, int] = {}
        self._at: dict[tuple[NodeId, str, Hashable], set[str]] = {}
        """The steps at which nodes are, each with the faults that have met it. A step of a node
        may be open for several groups."""

    def begin(self, node: NodeId, step: str, group: Hashable, faults: Iterable[str]) -> None:
        """A replica comes to a step, while these faults (`CUT`, `STALL`) are in force; or it is
        there still."""
        met = self._at.get((node, step, group))
        if met is None:
            met = self._at[node, step, group] = set()
            self._count(step, PASSED)
        met.update(faults)

    def end(self, node: NodeId, step: str, group: Hashable, faults: Iterable[str]) -> None:
        """It goes on from there, if it was there."""
        met = self._at.pop((node, step, group), None)
        if met is not None:
            self._close(step, met.union(faults))

    def die(self, node: NodeId) -> None:
        """The node dies, at whatever steps it is."""
        for key in [each for each in self._at if each[0] == node]:
            self._close(key[1], {*self._at.pop(key), CRASH})

    def finish(self) -> None:
        """The run is over."""
        for (_, step, _), met in self._at.items():
            self._close(step, met)
        self._at.clear()

    def _close(self, step: str, met: Iterable[str]) -> None:
        for fault in met:
            self._count(step, fault)

    def _count(self, step: str, fault: str) -> None:
        self.counts[step, fault] = self.counts.get((step, fault), 0) + 1
