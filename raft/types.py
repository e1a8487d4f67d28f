"""Values that every part of the Raft core shares: ids, entries, hard state, snapshots.

Numbers are plain ints behind names, so that signatures say what they count:

* `Term` counts elections, `LogIndex` counts entries (Kafka *offsets* count records; the two never
  mix, `broker/partition/partition.py` holds the one conversion),
* `Micros` is a point or span of the caller's monotonic clock in whole microseconds. The core never
  reads a clock; it is told the time with every input.

The core keeps an index of terms and byte sizes, never a payload: entries pass through `Ready` on
their way to the log store and are dropped (docs/explanation/architecture.md, The turn).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

NodeId: TypeAlias = int
GroupId: TypeAlias = int
Term: TypeAlias = int
LogIndex: TypeAlias = int
Micros: TypeAlias = int

Payload: TypeAlias = Any  # the code above chooses it; the core uses only its `len()`
Matched: TypeAlias = Any  # the argument of a handler that a table finds by the argument's class

NO_NODE: NodeId = 0
"""Nobody: no vote given, no leader known. Node ids start at 1."""

ENTRY_OVERHEAD_BYTES = 32
"""Bytes that an entry counts for besides its payload, in every byte budget."""


class EntryKind(IntEnum):
    """The kind of an entry. The core itself uses the first two and passes the others on."""

    EMPTY = 0
    """A new leader's first entry (thesis 6.4): it commits everything before it."""
    CONFIGURATION = 1
    """The voters of the group; the first entry of every log."""
    BATCH = 2
    """One Kafka record batch."""
    COMMAND = 3
    """A decision of the state machine above (msgpack), such as *producers expired*."""


@dataclass(slots=True, init=False)
class Entry:
    """One entry of the replicated log. Treat as immutable: replicas in one process share it."""

    index: LogIndex
    term: Term
    kind: EntryKind
    payload: Payload
    """`ottla.log.types.RecordBatch` for BATCH, bytes otherwise. `len()` is its size in bytes."""
    size: int = field(compare=False, repr=False)
    """Bytes that this entry counts for in every budget: its payload plus a fixed overhead."""

    def __init__(self, index: LogIndex, term: Term, kind: EntryKind, payload: Payload):
        self.index = index
        self.term = term
        self.kind = kind
        self.payload = payload
        # Computed once, because every replica of the process and every budget reads it.
        self.size = len(payload) + ENTRY_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class HardState:
    """What a node must never forget (figure 2: persistent state, without the log)."""

    term: Term = 0
    vote: NodeId = NO_NODE


@dataclass(frozen=True, slots=True)
class SnapshotMeta:
    """Describes a snapshot, which replaces all entries up to and including `index`."""

    index: LogIndex
    term: Term
    voters: tuple[NodeId, ...]
    size: int
    """Bytes of the snapshot's data."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot with its data (opaque to the core)."""

    meta: SnapshotMeta
    data: bytes


@dataclass(slots=True)
class Proposal:
    """What a leader is asked to append: kind and payload, without an index. Treat as immutable; it
    is not frozen, because one is made for every request and that would cost time."""

    kind: EntryKind
    payload: Payload


@dataclass(slots=True)
class AppendRange:
    """Entries to write; they replace everything from index `first` on. Treat as immutable; it is
    not frozen, because one is made per turn and that would cost time."""

    first: LogIndex
    entries: Sequence[Entry]
