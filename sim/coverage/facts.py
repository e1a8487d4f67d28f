"""Facts: a history in the terms of the predicates, in one pass.

A predicate asks about batches (which node appended one, answered it, cut it off again), about
leaderships, and about what was done to nodes. Here the rows are sorted for that, each with its
place in time, so that a predicate is one expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from ottla.sim.history.history import Event

Key: TypeAlias = tuple[int, int, int, int]
"""A batch: partition, producer id, epoch, first sequence."""
Row: TypeAlias = Any
"""An `Event` of a kind that has the columns used."""


@dataclass(slots=True)
class Batch:
    """What happened to one batch."""

    key: Key
    sends: list[Row] = field(default_factory=list)
    appends: list[Row] = field(default_factory=list)
    """Appends of it by leaders."""
    answers: list[Row] = field(default_factory=list)
    errors: list[Row] = field(default_factory=list)
    cut: list[Row] = field(default_factory=list)
    """Appends of it that a truncation or a crash undid."""

    def stored_answers(self) -> list[Row]:
        """Answers that say that it is stored."""
        return [row for row in self.answers if row.code == "NONE"]


class Reign(NamedTuple):
    """A leadership, by its row."""

    row: Row
    before: Row | None
    """The row of the partition's leadership before it."""
    open_before: bool
    """Whether its log held entries of older terms that no node knew committed."""


class Facts:
    """See the module's docstring."""

    def __init__(self, rows: Sequence[Event]):
        self.rows = rows
        self.batches: dict[Key, Batch] = {}
        self.reigns: dict[int, list[Reign]] = {}
        self.kinds: dict[str, list[Row]] = {}
        self.codes: dict[str, int] = {}
        """How often clients got each answer, by name."""
        self._commit: dict[int, int] = {}
        self._log: dict[tuple[int, int], dict[int, Row]] = {}
        self._down: set[int] = set()
        self.blackout = False
        """Whether all nodes were down at once."""
        self.nodes = {row.node for row in rows if row.kind == "start"} | {
            row.node for row in rows if row.kind == "append" and row.node
        }
        handlers: dict[str, Callable[[Row], None]] = {
            "send": self._send,
            "append": self._append,
            "answer": self._answer,
            "error": self._error,
            "truncate": self._truncate,
            "crash": self._crash,
            "start": self._start,
            "leader": self._leader,
            "commit": self._committed,
        }
        for row in rows:
            self.kinds.setdefault(row.kind, []).append(row)
            handler = handlers.get(row.kind)
            if handler is not None and (row.partition is None or row.partition >= 0):
                handler(row)

    def of(self, *kinds: str) -> Iterator[Row]:
        """Rows of these kinds, kind by kind."""
        for kind in kinds:
            yield from self.kinds.get(kind, ())

    def faults(self, words: str) -> list[Row]:
        """Faults whose text contains these words."""
        return [row for row in self.of("fault") if words in row.code]

    def led(self, node: int, at: int) -> bool:
        """Whether a node was the latest leader of some partition at that event."""
        for reigns in self.reigns.values():
            latest = [each.row for each in reigns if each.row.eid < at]
            if latest and latest[-1].node == node:
                return True
        return False

    def up(self, node: int, at: int) -> bool:
        """Whether a node ran at that event. Its first life begins without a row."""
        turns = [row for row in self.of("start", "crash") if row.node == node and row.eid < at]
        return not turns or max(turns, key=lambda row: row.eid).kind == "start"

    def batch(self, row: Row) -> Batch:
        """The batch that a row is about."""
        key = (row.partition, row.pid, row.epoch, row.seq)
        found = self.batches.get(key)
        if found is None:
            found = self.batches[key] = Batch(key)
        return found

    # ---- rows

    def _send(self, row: Row) -> None:
        if _numbered(row):
            self.batch(row).sends.append(row)

    def _append(self, row: Row) -> None:
        self._log.setdefault((row.node, row.partition), {})[row.log_index] = row
        if row.aux and _numbered(row):
            self.batch(row).appends.append(row)

    def _answer(self, row: Row) -> None:
        self.codes[row.code] = self.codes.get(row.code, 0) + 1
        if _numbered(row):
            self.batch(row).answers.append(row)

    def _error(self, row: Row) -> None:
        if _numbered(row):
            self.batch(row).errors.append(row)

    def _truncate(self, row: Row) -> None:
        self._cut(row, row.log_index)

    def _crash(self, row: Row) -> None:
        self._cut(row, row.log_index + 1)
        self._down.add(row.node)
        self.blackout = self.blackout or self._down >= self.nodes

    def _start(self, row: Row) -> None:
        self._down.discard(row.node)

    def _cut(self, row: Row, first: int) -> None:
        log = self._log.get((row.node, row.partition), {})
        for index in [each for each in log if each >= first]:
            gone = log.pop(index)
            if gone.aux and _numbered(gone):
                self.batch(gone).cut.append(gone)

    def _leader(self, row: Row) -> None:
        reigns = self.reigns.setdefault(row.partition, [])
        commit = self._commit.get(row.partition, 0)
        log = self._log.get((row.node, row.partition), {})
        held = (each for index, each in log.items() if commit < index < row.log_index)
        # Entry 1 is there from the start; what counts is what a leader wrote.
        open_before = any(0 < each.term < row.term for each in held)
        reigns.append(Reign(row, reigns[-1].row if reigns else None, open_before))

    def _committed(self, row: Row) -> None:
        self._commit[row.partition] = max(self._commit.get(row.partition, 0), row.log_index)


def _numbered(row: Row) -> bool:
    """Whether a row is about a batch with a sequence; other batches cannot be told apart."""
    return row.pid is not None and row.pid >= 0


def in_order(batches: Iterable[Batch]) -> Iterator[tuple[Batch, Batch]]:
    """Neighbours of one partition, producer and epoch, by sequence."""
    ordered = sorted(batches, key=lambda each: each.key)
    for left, right in pairwise(ordered):
        if left.key[:3] == right.key[:3]:
            yield left, right
