"""Lanes: the state of each replica, moment by moment, which gives its lane its colour.

Changes of a recording are added up once, in order. `Lanes.until` goes on to the state after a step.
It never goes back, so a whole run costs one pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from ottla.raft.types import NodeId, Term
from ottla.sim.recording.record import Recording
from ottla.sim.recording.recorder import Step
from ottla.sim.recording.states import DOWN, Change, Known


class Look(NamedTuple):
    """What a lane shows of a replica."""

    role: str
    term: Term
    paused: bool


_PAUSES = {"pause", "resume", "crash"}


def leaned(recording: Recording, partitions: Iterable[int]) -> dict[int, Recording]:
    """For each partition, the recording with only the steps that change its lanes. One pass finds
    them for all partitions: with many partitions, few steps concern any one of them."""
    found: dict[int, list[Step]] = {each: [] for each in partitions}
    for step in recording.steps:
        everywhere = step.cut is not None or step.what in _PAUSES
        for each in found if everywhere else {change.partition for change in step.changes}:
            if each in found:
                found[each].append(step)
    return {each: replace(recording, steps=steps) for each, steps in found.items()}


class Lanes:
    """The replicas of one partition. See the module's docstring."""

    def __init__(self, recording: Recording, partition: int):
        self.nodes: tuple[NodeId, ...] = tuple(sorted(recording.placement.get(partition, ())))
        self.known = {node: Known() for node in self.nodes}
        self.cut: tuple[tuple[int, int], ...] = ()
        """Links that are cut or clogged."""
        self.partition = partition
        self._steps = recording.steps
        self._next = 0
        self._paused: set[NodeId] = set()

    def until(self, number: int) -> list[Change]:
        """Go on to the state after this step; returns the changes on the way."""
        changes: list[Change] = []
        while self._next < len(self._steps) and self._steps[self._next].number <= number:
            step = self._steps[self._next]
            self._next += 1
            if step.cut is not None:
                self.cut = step.cut
            if step.place is not None and step.what in _PAUSES:
                self._pause(step.place[1], paused=step.what == "pause")
            for change in step.changes:
                if change.partition == self.partition and change.node in self.known:
                    self.known[change.node].take(change)
                    changes.append(change)
        return changes

    def _pause(self, node: NodeId, *, paused: bool) -> None:
        if paused:
            self._paused.add(node)
        else:
            self._paused.discard(node)

    def looks(self) -> dict[NodeId, Look]:
        """The present look of every replica."""
        return {
            node: Look(known.role, known.term, paused=node in self._paused and known.role != DOWN)
            for node, known in self.known.items()
        }

    def cut_off(self) -> dict[NodeId, str]:
        """For each node, which of its links to the other replicas are cut, in words: all in one
        direction, or some. Empty if none are."""
        return {node: self._lost(node) for node in self.nodes}

    def _lost(self, node: NodeId) -> str:
        others = [each for each in self.nodes if each != node]
        out = sum((node, each) in self.cut for each in others)
        in_ = sum((each, node) in self.cut for each in others)
        if not out + in_:
            return ""
        if len(others) == out == in_:
            return "cut off"
        if out == len(others):
            return "heard by nobody"
        return "hears nobody" if in_ == len(others) else f"some links cut ({out + in_})"
