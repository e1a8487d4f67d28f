"""Artificial recordings of any size, to test what fits on a page.

In each turn a producer sends a batch to the leader of a partition, which appends it and sends it to
the others. Leaders change again and again, so that many events are decisive. A real broker need not
behave like that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.raft.messages import AppendEntries
from ottla.sim.history.history import Event
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.recording.record import Recording
from ottla.sim.recording.recorder import NOWHERE, Place, Step, Wire
from ottla.sim.recording.states import Change, Line
from ottla.sim.settings.settings import RunConfig


@dataclass(frozen=True)
class Big:
    """How large."""

    partitions: int = 1
    nodes: int = 3
    producers: int = 2
    turns: int = 20
    """Of each partition."""
    words: int = 1
    """In the text of what went wrong, and in some fault."""
    failed: bool = False
    invariant: str = "sim-I03"
    """Which one is broken."""
    added: int = 1
    """Entries with each append."""

    def recording(self) -> Recording:
        """A recording of that size; one that failed did so in partition 0, in the middle, or where
        what is broken is in no row, at its end."""
        return _Maker(self).made()


class _Maker:
    """Makes one up."""

    def __init__(self, big: Big) -> None:
        self._big = big
        self._rows: list[Event] = []
        self._steps: list[Step] = []
        self._nodes = tuple(range(1, big.nodes + 1))

    def made(self) -> Recording:
        """All of it."""
        big = self._big
        bad = 0
        for turn in range(big.turns):
            for partition in range(big.partitions):
                self._turn(turn, partition)
                if partition == 0 and turn == big.turns // 2:
                    bad = len(self._rows) - 1
            fault = "power " * big.words if turn == 1 else "power"
            self._row("fault", ("node", 1), node=1, code=fault)
        if big.failed and big.invariant in NOWHERE:
            self._steps.append(Step(len(self._steps), 100 * len(self._steps), "ended", None))
        found = [Anomaly(big.invariant, bad, "<lost> " * big.words)] if big.failed else []
        command = f"ottla sim explain 5 --set partitions={big.partitions}"
        placement = dict.fromkeys(range(-1, big.partitions), self._nodes)
        named = ("Seed 5", command, RunConfig(), "")
        told = (found, list[str](), "made up")
        return Recording(*named, *told, self._rows, self._steps, placement, {})

    def _row(self, kind: str, place: Place, **more: Any) -> Step:
        row = Event(len(self._rows), 100 * len(self._steps), kind, **more)
        self._rows.append(row)
        step = Step(len(self._steps), row.t_us, kind, place, row.partition, row)
        self._steps.append(step)
        return step

    def _turn(self, turn: int, partition: int) -> None:
        leader = self._nodes[(turn // 3 + partition) % len(self._nodes)]
        about: dict[str, Any] = {"partition": partition, "term": turn // 3 + 1}
        if turn % 3 == 0:
            step = self._row("leader", ("node", leader), node=leader, aux=0, **about)
            step.changes.append(Change(leader, partition, role="leader", term=about["term"]))
        producer = turn % max(self._big.producers, 1)
        sent = {"pid": producer, "epoch": 0, "seq": turn, "seq_last": turn}
        client: Place = ("client", producer)
        self._row("send", client, node=leader, client=producer, aux=1, **about, **sent)
        for node in self._nodes:
            self._append(turn, node, about, sent)
            if node != leader:
                self._wire(turn, leader, node, partition)

    def _append(self, turn: int, node: int, about: dict[str, Any], sent: dict[str, Any]) -> None:
        added, partition = self._big.added, about["partition"]
        where = {"log_index": turn * added + 1, "off": turn * added, "aux": 1}
        step = self._row("append", ("node", node), node=node, **where, **about, **sent)
        lines = [
            Line(
                turn * added + each + 1, turn * added + each, about["term"], 0, 0, turn, turn, each
            )
            for each in range(added)
        ]
        # On odd nodes the tables differ, so that not all of it can be told once.
        window = f"epoch 0 {turn}-{turn}@{turn * (node % 2)}"
        producers: dict[int | str, str] = {**dict.fromkeys(range(self._big.producers), window)}
        step.changes.append(Change(node, partition, hw=turn, add=lines, producers=producers))

    def _wire(self, turn: int, origin: int, goal: int, partition: int) -> None:
        message = AppendEntries(partition, origin, goal, 1, turn, 1, turn + 1, turn)
        wire = Wire(message, ("node", origin), ("node", goal), len(self._steps), None, partition)
        at = 100 * len(self._steps)
        self._steps.append(Step(wire.start, at, "sent", wire.origin, partition, wire=wire))
        wire.end = len(self._steps)
        self._steps.append(Step(wire.end, at + 50, "received", wire.goal, partition, wire=wire))
