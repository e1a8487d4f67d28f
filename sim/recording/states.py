"""The state of every replica, step by step, kept as changes, so that a run of thousands stays
small.

A `Known` is the state of one replica at one moment: its role and term, its high watermark, its log,
its producers. `Sampler.look` compares a replica with the last look at it and returns the changes.

| change | what it says |
|---|---|
| role, term, hw, start | the new value; role: leader, follower, ..., down or not there yet |
| cut | entries from this log index on are gone (before `add`) |
| add | entries at the end: log index, offset, term, producer id, epoch, first and last sequence |
| producers | the producer table, `id: text`; all of it |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.raft.types import LogIndex, NodeId, Term
from ottla.sim.history.history import CONTROLLER_PARTITION
from ottla.sim.world.log_view import LogView, Seen
from ottla.sim.world.world import World

DOWN = "down"
ABSENT = "not there yet"


class Line(NamedTuple):
    """One entry as it is shown."""

    log_index: LogIndex
    off: int | None
    """None for entries that hold no records."""
    term: Term
    pid: int | None
    epoch: int | None
    seq: int | None
    seq_last: int | None
    chain: int


@dataclass(slots=True)
class Change:
    """What changed on one replica. See the module's docstring; None and empty: nothing."""

    node: NodeId
    partition: int
    role: str | None = None
    term: Term | None = None
    hw: int | None = None
    start: LogIndex | None = None
    """First index of the log."""
    cut: LogIndex | None = None
    add: list[Line] = field(default_factory=list)
    producers: dict[int | str, str] | None = None

    def __bool__(self) -> bool:
        return bool(self.add) or any(
            each is not None
            for each in (self.role, self.term, self.hw, self.start, self.cut, self.producers)
        )


@dataclass(slots=True)
class Known:
    """The state of one replica at one moment."""

    role: str = ABSENT
    term: Term = 0
    hw: int = 0
    start: LogIndex = 1
    log: list[Line] = field(default_factory=list)
    producers: dict[int | str, str] = field(default_factory=dict)

    def take(self, change: Change) -> None:
        """Apply a change."""
        if change.role is not None:
            self.role = change.role
        if change.term is not None:
            self.term = change.term
        if change.hw is not None:
            self.hw = change.hw
        if change.start is not None:
            self.start = change.start
            self.log = [line for line in self.log if line.log_index >= change.start]
        if change.cut is not None:
            cut = change.cut
            self.log = [line for line in self.log if line.log_index < cut]
        self.log.extend(change.add)
        if change.producers is not None:
            self.producers = change.producers

    def copy(self) -> Known:
        """A copy that stays as it is."""
        return Known(
            self.role, self.term, self.hw, self.start, list(self.log), dict(self.producers)
        )


class Sampler:
    """Looks at replicas, and says what changed since the last look."""

    def __init__(self, world: World):
        self._world = world
        self._known: dict[tuple[NodeId, int], Known] = {}

    def look(self, node: NodeId, partition: int) -> Change | None:
        """What changed there; None: nothing, or there is no replica."""
        life = self._world.lives.get(node)
        if life is None:
            return self._down(node, partition)
        if partition == CONTROLLER_PARTITION:
            replica = life.view.controller()
        else:
            replica = life.replica(partition)
        if replica is None:
            return None
        known = self._known.setdefault((node, partition), Known())
        change = Change(node, partition)
        made = replica.partition
        _differ(change, known, "role", replica.role.value)
        _differ(change, known, "term", replica.term)
        _log(change, known, self._world.observer.view(node, replica.group))
        if made is not None:
            _differ(change, known, "hw", made.high_watermark)
            described = made.describe_producers()
            producers = {pid: _producer(each) for pid, each in described.items()}
            if producers != known.producers:
                change.producers = producers
        return self._keep(known, change)

    def _down(self, node: NodeId, partition: int) -> Change | None:
        known = self._known.get((node, partition))
        if known is None or known.role == DOWN:
            return None
        return self._keep(known, Change(node, partition, role=DOWN, producers={}))

    def survived(self, node: NodeId, partition: int, last: LogIndex) -> Change | None:
        """A life ended, and its log holds entries up to `last`."""
        known = self._known.get((node, partition))
        if known is None:
            return None
        change = Change(node, partition, role=DOWN, producers={})
        if known.log and known.log[-1].log_index > last:
            change.cut = last + 1
        return self._keep(known, change)

    @staticmethod
    def _keep(known: Known, change: Change) -> Change | None:
        known.take(change)
        return change or None


def _differ(change: Change, known: Known, name: str, value: Any) -> None:
    if getattr(known, name) != value:
        setattr(change, name, value)


def _log(change: Change, known: Known, view: LogView) -> None:
    _differ(change, known, "start", view.first)
    held = [line for line in known.log if line.log_index >= view.first]
    while held and not _stands(view, held[-1]):
        change.cut = held.pop().log_index
    first = held[-1].log_index + 1 if held else view.first
    change.add = [_line(index, view.at(index)) for index in range(first, view.last + 1)]


def _stands(view: LogView, line: Line) -> bool:
    return line.log_index <= view.last and view.at(line.log_index).chain == line.chain


def _line(index: LogIndex, seen: Seen) -> Line:
    return Line(
        index, seen.off, seen.term, seen.pid, seen.epoch, seen.seq, seen.seq_last, seen.chain
    )


def _producer(known: dict[str, Any]) -> str:
    """Epoch, the window as `first-last@offset`, and after `+` what is in flight."""
    epoch = "new" if known["epoch"] is None else f"epoch {known['epoch']}"
    window = [f"{first}-{last}@{at}" for first, last, at, _ in known["finished"]]
    for each in known["in_flight"]:
        parked = f" ({each['parked']} parked)" if each["parked"] else ""
        window.append(f"+{each['first']}-{each['last']} in term {each['term']}{parked}")
    return " ".join([epoch, *window])
