"""The one recovery routine of all stores: what a torn or damaged log means at the next start.

**Theory.** A crash may lose what was not synced, and nothing else. So recovery depends on one
number, the *synced mark*: the last index of a group that a finished sync covered. The store keeps
the mark beside the entries.

* A fault behind the mark is the rest of a write that was never confirmed. The log is cut there. All
  entries behind the cut are dropped, even if they look good, because a disk writes unsynced blocks
  in any order (docs/reference/faults.md, D2 and D3).
* A fault at or below the mark is damage to durable data (D4). Somebody may rely on it, so the node
  must not vote or serve, and refuses to start. Only another replica can repair it.

The routine reads records in the order of their keys and stops at the first fault. `CASES` lists the
faults. Every store and the simulated disk use this routine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ottla.log.errors import CorruptLogError
from ottla.raft.types import Entry, GroupId, LogIndex, Term


@dataclass(slots=True)
class StoredRecord:
    """What is stored under one key. `entry` is None if its bytes or their checksum are wrong."""

    index: LogIndex
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class LogExtent:
    """What the store knows about a group's log besides the entries."""

    group: GroupId
    first_index: LogIndex
    """Index of the first entry that must exist."""
    synced_to: LogIndex
    """The synced mark; `first_index - 1` or less if no entry was ever synced."""
    term: Term
    """Term of the hard state: no entry can have a later one."""


@dataclass(slots=True)
class Expected:
    """What the next record must be."""

    index: LogIndex
    term: Term
    """Term of the previous entry."""
    max_term: Term


class Verdict(Enum):
    """What a case means."""

    CUT = "the log ends before this record"
    REFUSE = "something durable is damaged"


class Case(NamedTuple):
    """One kind of fault, and its verdict on each side of the synced mark."""

    label: str
    holds: Callable[[StoredRecord, Expected], bool]
    at_or_below_mark: Verdict
    behind_mark: Verdict
    reason: str


def _entry_is(test: Callable[[Entry, Expected], bool]) -> Callable[[StoredRecord, Expected], bool]:
    return lambda record, expected: record.entry is not None and test(record.entry, expected)


CASES: tuple[Case, ...] = (
    Case(
        "missing",
        lambda record, expected: record.index != expected.index,
        Verdict.REFUSE,
        Verdict.CUT,
        "indexes are consecutive; D2: unsynced blocks are lost in any order",
    ),
    Case(
        "damaged",
        lambda record, _: record.entry is None,
        Verdict.REFUSE,
        Verdict.CUT,
        "D3 torn write, D4 bit rot: the checksum covers header, stamp and payload",
    ),
    Case(
        "misplaced",
        _entry_is(lambda entry, expected: entry.index != expected.index),
        Verdict.REFUSE,
        Verdict.CUT,
        "D4 misdirected write: a well-formed entry under another entry's key",
    ),
    Case(
        "term goes back",
        _entry_is(lambda entry, expected: entry.term < expected.term),
        Verdict.REFUSE,
        Verdict.CUT,
        "terms never fall along a log (Raft paper, figure 3, Log Matching)",
    ),
    Case(
        "term of the future",
        _entry_is(lambda entry, expected: entry.term > expected.max_term),
        Verdict.REFUSE,
        Verdict.CUT,
        "D5: a node stores its term before, or with, an entry of that term",
    ),
)
"""The first case that holds decides. A record for which none holds is kept."""


def recover(extent: LogExtent, records: Iterable[StoredRecord]) -> LogIndex:
    """The last index of the log that is kept; the caller must drop everything behind it.

    `records` come in key order from `extent.first_index` on. Raises `CorruptLogError` if a record
    at or below the synced mark has a fault or is missing.
    """
    index, term = extent.first_index, 0
    max_term = extent.term
    for record in records:
        entry = record.entry
        if (
            entry is not None
            and record.index == index == entry.index
            and term <= entry.term <= max_term
        ):
            term = entry.term  # the usual record: no case holds
            index += 1
            continue
        expected = Expected(index, term, max_term)
        case = next((case for case in CASES if case.holds(record, expected)), None)
        if case is not None:
            below = index <= extent.synced_to
            verdict = case.at_or_below_mark if below else case.behind_mark
            if verdict is Verdict.REFUSE:
                raise CorruptLogError(extent.group, index, _refusal(case.label, record, extent))
            break
        assert record.entry is not None
        term = record.entry.term
        index += 1
    if index <= extent.synced_to:
        raise CorruptLogError(
            extent.group, index, f"missing: the log was synced up to {extent.synced_to}"
        )
    return index - 1


class Kept:
    """Keeps the last entries that recovery accepted, about `room` bytes of them.

    A start reads a log twice: for recovery, and to build the replica's state. Entries that are kept
    are decoded only once.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self.bytes = 0
        self.entries: list[Entry] = []

    def seen(self, records: Iterable[StoredRecord]) -> Iterator[StoredRecord]:
        """Pass `records` on and keep their entries. A record counts as accepted when recovery asks
        for the next one."""
        add = self.entries.append
        for record in records:
            yield record
            entry = record.entry
            assert entry is not None, f"recovery went on behind a damaged record {record}"
            add(entry)
            self.bytes += entry.size
            if self.bytes > self._room:
                self._make_room()

    def _make_room(self) -> None:
        """Drop the older half at once: dropping one entry moves all the others."""
        gone = (len(self.entries) + 1) // 2
        self.bytes -= sum(entry.size for entry in self.entries[:gone])
        del self.entries[:gone]


def _refusal(label: str, record: StoredRecord, extent: LogExtent) -> str:
    found = f"found index {record.index}"
    if record.entry is not None:
        found += f", entry {record.entry.index} of term {record.entry.term}"
    return f"{label} though synced up to {extent.synced_to} in term {extent.term} ({found})"
