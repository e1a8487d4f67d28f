"""`LogView`: one node's log of one group, as seen from outside.

A view belongs to a disk, so it goes on through the lives of its node; a crash cuts it to what
survived. `chain` is a hash over the log up to and including an entry: equal chains mean equal
prefixes.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import msgpack

from ottla.log.checksum import crc32c
from ottla.log.record_batch import identity
from ottla.log.types import Offset, RecordBatch
from ottla.raft.types import NO_NODE, Entry, EntryKind, GroupId, LogIndex, NodeId, Term

_PRIME = 0x9E3779B97F4A7C15
_MASK = (1 << 63) - 1
"""Masks a chain, so that it fits a signed 64-bit column."""
NOBODY: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)
"""What a batch without a producer id has: no id, epoch, first or last sequence."""
_NOTHING: tuple[tuple[int, ...], Offset | None] = ((), None)


class Seen(NamedTuple):
    """One entry as the history shows it."""

    term: Term
    off: Offset | None
    pid: int | None
    epoch: int | None
    seq: int | None
    seq_last: int | None
    chain: int
    next_off: Offset
    expires: tuple[int, ...] = ()
    """Producers that this entry, a command, makes every replica forget."""
    start: Offset | None = None
    """The log start that this entry, a command, sets."""


NOTHING = Seen(0, None, None, None, None, None, 0, 0)
"""Stands for everything before the first entry of a log that no snapshot begins."""


class Written:
    """Every entry that some node has written, by group, index and term: in a correct run there is
    only one for each."""

    def __init__(self) -> None:
        self._entries: dict[tuple[GroupId, LogIndex, Term], Seen] = {}
        self._applied: dict[tuple[GroupId, LogIndex, Term], LogIndex] = {}

    def at(self, group: GroupId, index: LogIndex, term: Term) -> Seen:
        """The entry, as its first writer wrote it."""
        return self._entries[group, index, term]

    def keep(self, group: GroupId, index: LogIndex, seen: Seen, applied: LogIndex) -> None:
        """A node writes an entry; `applied`: up to where it has applied the log."""
        self._entries.setdefault((group, index, seen.term), seen)
        if seen.expires:
            self._applied.setdefault((group, index, seen.term), applied)

    def applied(self, group: GroupId, index: LogIndex, term: Term) -> LogIndex:
        """What the first writer of this decision to forget producers had applied."""
        return self._applied[group, index, term]


class LogView:
    """One node's log of one group; `entries[i]` has index `first + i`."""

    __slots__ = (
        "applied",
        "base",
        "commit",
        "entries",
        "first",
        "led",
        "log_start",
        "stated",
        "term",
        "vote",
    )

    def __init__(self) -> None:
        self.first: LogIndex = 1
        self.entries: list[Seen] = []
        self.base = NOTHING
        """Stands for everything before `first`."""
        self.term: Term = 0
        self.vote: NodeId = NO_NODE
        self.led: Term = 0
        """Latest term in which the node was seen to lead."""
        self.log_start: Offset = 0
        """The last log start in a row."""
        self.commit: LogIndex = 0
        self.applied: LogIndex = 0
        self.stated: tuple[LogIndex, list[Any]] | None = None
        """The machine's last state in a row: the last applied index, and its producer table."""

    @property
    def last(self) -> LogIndex:
        """Index of the last entry."""
        return self.first + len(self.entries) - 1

    def at(self, index: LogIndex) -> Seen:
        """The entry at `index`, or what stands for all before the first."""
        return self.entries[index - self.first] if index >= self.first else self.base

    def extend(self, entry: Entry) -> Seen:
        """One more entry at the end."""
        before = self.entries[-1] if self.entries else self.base
        payload = entry.payload
        if isinstance(payload, RecordBatch):
            who = identity(payload)
            mark, off = payload.crc, payload.base_offset
            next_off = payload.last_offset + 1
            pid, epoch, seq, seq_last = NOBODY if who is None else who
            expires, start = _NOTHING
        else:
            mark, off, next_off = crc32c(cast(bytes, payload)), None, before.next_off
            pid, epoch, seq, seq_last = NOBODY
            expires, start = _command(entry)
        chain = (before.chain * _PRIME ^ entry.term << 40 ^ mark << 3 ^ entry.kind) & _MASK
        seen = Seen(entry.term, off, pid, epoch, seq, seq_last, chain, next_off, expires, start)
        self.entries.append(seen)
        return seen

    def cut(self, index: LogIndex) -> None:
        """Entries from `index` on are gone."""
        del self.entries[max(0, index - self.first) :]

    def compact(self, index: LogIndex) -> None:
        """Entries up to `index` leave the log. What they were stays known as `base`."""
        if index >= self.first:
            self.base = self.at(index)
            del self.entries[: index + 1 - self.first]
            self.first = index + 1

    def put_back(self, first: LogIndex, base: Seen) -> None:
        """A crash undid a compaction: the log begins at `first` again, and its entries have to be
        added again."""
        self.entries.clear()
        self.first, self.base = first, base

    def reset(self, index: LogIndex, base: Seen) -> None:
        """A snapshot that ends at `index` replaces everything."""
        self.entries.clear()
        self.first, self.base = index + 1, base
        self.commit = self.applied = max(self.applied, index)
        self.stated = None


def _command(entry: Entry) -> tuple[tuple[int, ...], Offset | None]:
    """Which producers a partition's command forgets, and the log start that it sets
    (`ottla.broker.partition.partition`: commands in the log)."""
    if entry.kind is not EntryKind.COMMAND:
        return _NOTHING
    told = msgpack.unpackb(cast(bytes, entry.payload), strict_map_key=False)
    if not isinstance(told, list) or told[0] not in ("expire", "delete_records"):
        return _NOTHING
    if told[0] == "delete_records":
        return (), told[1]
    # Profiles that remember each epoch by itself name the epoch beside the producer's id.
    return tuple(each[0] if isinstance(each, list) else each for each in told[1]), None
