"""The recorder: everything that a page about a run needs, in order.

A run is repeated with the recorder watching (`run_choices(..., watching=[recorder.watch])`). It
listens to the history, to every message (`wires.py`) and every decision, and looks at each replica
that a row is about (`states.py`). The result is a list of *steps*. Each has one place, a node or a
client, or is everywhere.

The recorder decides nothing and makes no choice: a recorded run has the digest of the first one,
and callers check that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ottla.idempotency.decisions import Decision
from ottla.log.types import BatchIdentity
from ottla.raft.types import Micros, NodeId, Term
from ottla.sim.history.history import CONTROLLER_PARTITION, KINDS, Event
from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.nemesis.strays import STRANGER
from ottla.sim.recording.states import Change, Sampler
from ottla.sim.recording.wires import watch_wires
from ottla.sim.world.frames import partition_of
from ottla.sim.world.world import World

Place: TypeAlias = tuple[str, int]
"""("node", number) or ("client", number)."""
NOWHERE = {"sim-I00", "sim-I31"}
"""Invariants whose violation shows in no row: the row of the anomaly is just the last one."""
OF_NODES = frozenset({"answer", "decide", "late"})
"""Kinds of rows that belong to nodes although they name a client, too."""
_NAMED = re.compile(r"\bnode (\d+)\b")


@dataclass(slots=True, eq=False)
class Wire:
    """One message. `start` and `end` are numbers of steps; `end` None: it never arrived."""

    message: Any
    origin: Place
    goal: Place
    start: int
    end: int | None = None
    partition: int | None = None
    """None: it is about no partition, or about several."""


@dataclass(slots=True, eq=False)
class Step:
    """Something that happened. `what` is the kind of `row`, or one of sent, received, asked,
    arrived, answered, heard, decided, command, ended, noticed."""

    number: int
    at: Micros
    what: str
    place: Place | None
    """None: everywhere."""
    partition: int | None = None
    row: Event | None = None
    wire: Wire | None = None
    detail: Any = None
    """Of `decided`: (identity, term, decision). Of `command`: its words. Of a `decide` of the
    reference model: the row of the decision that it disagrees with."""
    changes: list[Change] = field(default_factory=list)
    """The changes on replicas at this step."""
    cut: tuple[tuple[int, int], ...] | None = None
    """Links that are cut or clogged from here on; None: as before."""


def went_on(rows: Sequence[Event], anomaly: Anomaly | None) -> bool:
    """Whether the anomaly shows in no row and did not end the run either: a node logged it."""
    if anomaly is None or anomaly.invariant not in NOWHERE:
        return False
    return any(row.kind != "final" for row in rows[anomaly.eid + 1 :])


class Recorder:
    """See the module's docstring."""

    def __init__(self, noticed: Anomaly | None = None) -> None:
        """`noticed`: an anomaly that shows in no row, of a run that went on after it."""
        self._noticed = noticed
        self.steps: list[Step] = []
        self.names: dict[int, str] = {STRANGER: "stray"}
        """Clients that have a name, by number."""
        self._rows = 0
        self._under_way: dict[tuple[int, Place], Wire] = {}
        self._cut: tuple[tuple[int, int], ...] = ()
        self._world: World

    def watch(self, world: World) -> None:
        """Record this world, which is not booted yet."""
        self._world = world
        self._sampler = Sampler(world)
        watch_wires(world, self)
        world.observer.decision_watchers.append(self._decided)
        world.history.listen(KINDS, self._row)

    def finish(self, rows: Sequence[Event], anomaly: Anomaly | None = None) -> None:
        """The run is over. Listeners after the one that ended it did not get the last row.
        `anomaly`: what went wrong first; if no row shows it, a step does."""
        for row in rows[self._rows :]:
            self._row(row)
        if anomaly is not None and anomaly.invariant in NOWHERE and anomaly != self._noticed:
            self._broken("noticed" if went_on(rows, anomaly) else "ended", anomaly)

    @property
    def placement(self) -> dict[int, tuple[NodeId, ...]]:
        """Replicas by partition; -1 is the controller's group, on all nodes."""
        return {CONTROLLER_PARTITION: self._world.nodes, **self._world.placement}

    def command(self, words: str) -> None:
        """A script runs a command."""
        self._step("command", None, detail=words)

    # ---- steps

    def _broken(self, what: str, anomaly: Anomaly) -> None:
        """A step of its own, at the node that the text names if it names exactly one."""
        named = {int(each) for each in _NAMED.findall(anomaly.text)} & {*self._world.nodes}
        self._step(what, ("node", named.pop()) if len(named) == 1 else None)

    def _step(self, what: str, place: Place | None, **more: Any) -> Step:
        step = Step(len(self.steps), self._world.kernel.now, what, place, **more)
        cut = tuple(
            name
            for name, link in self._world.network.links.items()
            if link.cut or link.held is not None
        )
        if cut != self._cut:
            self._cut = step.cut = cut
        self.steps.append(step)
        return step

    def _row(self, row: Event) -> None:
        self._rows = row.eid + 1
        place, detail = self._place(row), None
        if row.kind == "decide" and row.node == MODEL_NODE:
            # It follows the decision that it disagrees with, whose node is wrong.
            detail = self._world.history.rows[row.eid - 1]
            place = self._place(detail)
        step = self._step(row.kind, place, partition=row.partition, row=row, detail=detail)
        self._look_around(step, row)
        if self._noticed is not None and self._noticed.eid == row.eid:
            self._broken("noticed", self._noticed)

    def _place(self, row: Event) -> Place | None:
        if row.client is not None and row.kind not in OF_NODES:
            return "client", row.client
        if row.node is not None and row.node != MODEL_NODE:
            return "node", row.node
        return None

    def _look_around(self, step: Step, row: Event) -> None:
        place = step.place
        if place is None or place[0] != "node" or row.kind == "final":
            return
        node, partition = place[1], row.partition
        numbers = range(-1, self._world.config.partitions) if partition is None else (partition,)
        for number in numbers:
            self._look(step, node, number)

    def _look(self, step: Step, node: NodeId, partition: int) -> None:
        row = step.row
        assert row is not None, "only rows are looked at"
        if row.kind == "crash":
            change = self._sampler.survived(node, partition, row.log_index or 0)
        else:
            change = self._sampler.look(node, partition)
        if change is not None:
            step.changes.append(change)

    def _decided(
        self, node: NodeId, partition: int, who: BatchIdentity, term: Term, decision: Decision
    ) -> None:
        detail = (who, term, decision)
        self._step("decided", ("node", node), partition=partition, detail=detail)

    # ---- wires (`wires.Watcher`)

    def _leaves(self, what: str, origin: Place, goal: Place, message: Any, *, lost: bool) -> None:
        wire = Wire(message, origin, goal, len(self.steps), partition=self._about(message))
        self._step(what, origin, partition=wire.partition, wire=wire)
        if not lost:
            self._under_way[id(message), goal] = wire

    def _arrives(self, what: str, goal: Place, message: Any) -> None:
        wire = self._under_way.get((id(message), goal))
        if wire is None or wire.message is not message:
            return
        step = self._step(what, goal, partition=wire.partition, wire=wire)
        if wire.end is None:
            wire.end = step.number

    def _about(self, message: Any) -> int | None:
        group = getattr(message, "group", None)
        if group is not None:
            return self._world.observer.partitions.get(group, -1)
        return partition_of(message)

    def sent(self, sender: NodeId, to: NodeId, message: Any, *, lost: bool) -> None:
        """See `wires.Watcher`."""
        self._leaves("sent", ("node", sender), ("node", to), message, lost=lost)

    def received(self, to: NodeId, message: Any) -> None:
        """See `wires.Watcher`."""
        self._arrives("received", ("node", to), message)

    def asked(self, client: int, node: NodeId, request: Any) -> None:
        """See `wires.Watcher`."""
        self._leaves("asked", ("client", client), ("node", node), request, lost=False)

    def arrived(self, client: int, node: NodeId, request: Any) -> None:
        """See `wires.Watcher`."""
        self._arrives("arrived", ("node", node), request)

    def answered(self, client: int, node: NodeId, answer: Any) -> None:
        """See `wires.Watcher`."""
        self._leaves("answered", ("node", node), ("client", client), answer, lost=False)

    def heard(self, client: int, node: NodeId, answer: Any) -> None:
        """See `wires.Watcher`."""
        self._arrives("heard", ("client", client), answer)
