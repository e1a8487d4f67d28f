"""What the disks of a partition's nodes hold of its log, what they forgot, and where it broke.

`Disk` is one node's, `Copies` all of a partition's. `beyond` tells them what the rows of a history
say. They are for histories with faults that no Raft survives, in which a disk may lose what was
durable. An entry is identified by its *chain*, a hash of it and all before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

NEVER = (1 << 62) + 1
"""A row after all rows of a history."""


class Forgot(NamedTuple):
    """An entry that a node's disk held and no longer holds; part of a snapshot if its chain is
    0."""

    chain: int
    how: str


@dataclass(frozen=True, slots=True)
class Break:
    """Committed entries of a partition that are no longer on a quorum of disks."""

    eid: int
    low: int
    high: int
    """Log indexes from `low` to `high`, both inclusive."""
    holders: frozenset[int]
    """Nodes that held the last of them then."""
    forgetters: Mapping[int, str]
    """Nodes that forgot one of them, and by which fault."""


@dataclass(slots=True)
class Disk:
    """What one node's disk holds of a partition's log, row by row."""

    chains: list[int] = field(default_factory=list)
    """Chains by log index from 1; 0 for what a snapshot covers."""
    mark: int = 0
    """The last durable log index."""
    installed: int = 0
    """The last index of a snapshot that waits for a sync."""
    forgot: dict[int, Forgot] = field(default_factory=dict)
    since: int = NEVER
    """The row in which its log last forgot something."""
    first: int = NEVER
    """The row in which it first forgot anything."""
    wrote: int = -1
    """The row of the last write that does not show in the end of the log."""
    kept: int = -1
    """The value of `wrote` when its node last synced and did not lie."""

    def holds(self, index: int, chain: int) -> bool:
        """Whether it holds that entry durably."""
        return index <= self.mark and self.at(index) in {chain, 0}

    def at(self, index: int) -> int:
        """The chain at an index."""
        return self.chains[index - 1] if 0 < index <= len(self.chains) else 0

    def append(self, index: int, chain: int) -> None:
        """Append one entry."""
        self.cut(index)
        self.chains += [0] * (index - 1 - len(self.chains))
        self.chains.append(chain)

    def cut(self, index: int) -> None:
        """Drop the entries from `index` on."""
        del self.chains[index - 1 :]
        self.mark = min(self.mark, index - 1)

    def install(self, index: int) -> None:
        """A snapshot that covers all up to `index` replaces the log. It is not durable yet: until
        then the disk may give back what it had below."""
        self.cut(index)
        self.installed = index

    def sync(self, index: int) -> None:
        """All up to `index` is durable."""
        self.mark = index
        if self.installed:
            self.chains[: self.installed] = [0] * self.installed
            self.installed = 0


@dataclass(slots=True)
class Copies:
    """One partition's log on all disks, what of it is committed, and where it broke."""

    disks: dict[int, Disk] = field(default_factory=dict)
    votes: dict[tuple[int, int], int] = field(default_factory=dict)
    breaks: list[Break] = field(default_factory=list)
    committed: dict[int, int] = field(default_factory=dict)
    """Chains by log index."""
    commit: int = 0
    quorum: int = 0
    led: int = NEVER
    """The row in which a node last began to lead it."""

    def disk(self, node: int) -> Disk:
        """The disk of that node."""
        return self.disks.setdefault(node, Disk())

    def look(self, eid: int) -> None:
        """Check whether something committed is on too few disks, because disks forgot it."""
        forgotten = {index for disk in self.disks.values() for index in disk.forgot}
        under = []
        for index in sorted(forgotten & self.committed.keys()):
            chain = self.committed[index]
            stands = sum(disk.holds(index, chain) for disk in self.disks.values())
            gone = sum(
                not disk.holds(index, chain)
                and index in disk.forgot
                and disk.forgot[index].chain in {chain, 0}
                for disk in self.disks.values()
            )
            if stands < self.quorum <= stands + gone:
                under.append(index)
        if under:
            last = under[-1]
            chain = self.committed[last]
            disks = self.disks.items()
            holders = frozenset(node for node, disk in disks if disk.holds(last, chain))
            forgetters = {
                node: disk.forgot[last].how for node, disk in disks if last in disk.forgot
            }
            self.breaks.append(Break(eid, under[0], last, holders, forgetters))
