"""The observer: turns what nodes do at their seams into rows of the history.

It looks from outside: at what a store was given and when that became durable, at roles and commit
indexes after a turn. Nothing in the broker knows that it is watched, and nothing here decides.

For each node and group it keeps a `LogView`: what stands in that log, with the chain of hashes over
it. A view belongs to the disk, so it goes on through lives; a crash cuts it to what survived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from ottla.broker.controller import CONTROLLER_GROUP
from ottla.broker.partition import Partition
from ottla.broker.seat import Seat
from ottla.log.checksum import crc32c
from ottla.log.memory_store import MemorySyncJob
from ottla.log.record_batch import identity
from ottla.log.store import SyncJob, Write
from ottla.log.types import Offset, RecordBatch
from ottla.raft.quorum import majority
from ottla.raft.roles import Role
from ottla.raft.types import NO_NODE, Entry, GroupId, LogIndex, NodeId, Term

if TYPE_CHECKING:
    from ottla.sim.history import History
    from ottla.sim.life import Life

_PRIME = 0x9E3779B97F4A7C15
_MASK = (1 << 63) - 1
"""Chains fit a signed 64-bit column."""
CONTROLLER_PARTITION = -1
_NOBODY: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)


class Seen(NamedTuple):
    """One entry as the history tells it."""

    term: Term
    off: Offset | None
    pid: int | None
    epoch: int | None
    seq: int | None
    seq_last: int | None
    chain: int
    next_off: Offset


class LogView:
    """What stands in one node's log of one group; `entries[i]` has index `first + i`."""

    __slots__ = ("applied", "base", "commit", "entries", "first", "led", "term", "vote")

    def __init__(self) -> None:
        self.first: LogIndex = 1
        self.entries: list[Seen] = []
        self.base = Seen(0, None, None, None, None, None, 0, 0)
        """Stands for everything before `first`."""
        self.term: Term = 0
        self.vote: NodeId = NO_NODE
        self.led: Term = 0
        """Latest term in which it was seen to lead."""
        self.commit: LogIndex = 0
        self.applied: LogIndex = 0

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
            pid, epoch, seq, seq_last = _NOBODY if who is None else who
        else:
            mark, off, next_off = crc32c(cast(bytes, payload)), None, before.next_off
            pid, epoch, seq, seq_last = _NOBODY
        chain = (before.chain * _PRIME ^ entry.term << 40 ^ mark << 3 ^ entry.kind) & _MASK
        seen = Seen(entry.term, off, pid, epoch, seq, seq_last, chain, next_off)
        self.entries.append(seen)
        return seen

    def cut(self, index: LogIndex) -> None:
        """Entries from `index` on are gone."""
        del self.entries[max(0, index - self.first) :]

    def compact(self, index: LogIndex) -> None:
        """Entries up to `index` are gone from the log, but stay what they were."""
        if index >= self.first:
            self.base = self.at(index)
            del self.entries[: index + 1 - self.first]
            self.first = index + 1

    def reset(self, index: LogIndex, base: Seen) -> None:
        """A snapshot that ends in `index` replaces everything."""
        self.entries.clear()
        self.first, self.base = index + 1, base
        self.commit = self.applied = max(self.applied, index)


class Observer:
    """All views, and the rows that come of watching them."""

    def __init__(self, history: History):
        self.history = history
        self.partitions = {CONTROLLER_GROUP: CONTROLLER_PARTITION}
        """Number of the partition by group, as the controller placed them."""
        self.views: dict[tuple[NodeId, GroupId], LogView] = {}
        self._chains: dict[tuple[GroupId, LogIndex, Term], Seen] = {}

    def view(self, node: NodeId, group: GroupId) -> LogView:
        """What stands in that log."""
        found = self.views.get((node, group))
        if found is None:
            found = self.views[node, group] = LogView()
        return found

    def logs_of(self, life: Life) -> LogWatch:
        """Who watches the store of that life."""
        return LogWatch(self, life)

    def seen_at(self, group: GroupId, index: LogIndex, term: Term) -> Seen:
        """The entry that anybody wrote there in that term."""
        return self._chains[group, index, term]

    def remember(self, group: GroupId, index: LogIndex, seen: Seen) -> None:
        """Keep what `seen_at` is asked for."""
        self._chains.setdefault((group, index, seen.term), seen)

    def knows(self, life: Life, group: GroupId) -> bool:
        """Whether the group is one of the topic's partitions, or the controller's."""
        if group not in self.partitions:
            placed = life.node.controller_machine.partition_of(group)
            if placed is None:
                return False
            self.partitions[group] = placed[1].partition
        return True

    # ---- a life's own events

    def started(self, life: Life) -> None:
        """A life begins: its views are what its disk still holds."""
        node = life.node_id
        kept = {each.group: each for each in life.store.groups()}
        for (owner, group), view in self.views.items():
            if owner == node:
                stored = kept.get(group)
                view.cut((stored.last_index if stored else 0) + 1)
                view.commit = view.applied = 0 if stored is None else stored.first_index - 1
                view.led = 0
                if stored is not None:
                    view.term, view.vote = stored.hard_state.term, stored.hard_state.vote
        for group, stored in kept.items():
            self.history.add(
                "start",
                node=node,
                inc=life.inc,
                partition=self.partitions[group],
                term=stored.hard_state.term,
                log_index=stored.last_index,
            )

    def crashed(self, life: Life, code: str, lost: int) -> None:
        """A life ended; what its disk still holds is told by log."""
        images = life.world.disks[life.node_id].medium.images
        for group, image in sorted(images.items()):
            self.history.add(
                "crash",
                node=life.node_id,
                inc=life.inc,
                partition=self.partitions[group],
                log_index=image.last_index,
                code=code,
                aux=lost,
            )

    def role_changed(self, life: Life, seat: Seat) -> None:
        """A replica has another role, term or leader: say when it ceased to lead."""
        view = self.view(life.node_id, seat.group)
        soft = seat.soft
        if view.led and soft.role is not Role.LEADER:
            self.history.add(
                "stepdown",
                node=life.node_id,
                inc=life.inc,
                partition=self.partitions[seat.group],
                term=view.led,
                code=soft.role.name.lower(),
            )
            view.led = 0

    def moved(self, life: Life, seat: Seat) -> None:
        """A replica has applied something: commit, apply and state rows."""
        group, replica = seat.group, seat.replica
        view, core, machine = self.view(life.node_id, group), replica.core, replica.machine
        partition = machine if isinstance(machine, Partition) else None
        add, number, node, inc = self.history.add, self.partitions[group], life.node_id, life.inc
        if core.commit > view.commit:
            view.commit = core.commit
            add(
                "commit",
                node=node,
                inc=inc,
                partition=number,
                term=core.term,
                log_index=core.commit,
                hw=None if partition is None else partition.state.high_watermark,
                aux=int(core.role is Role.LEADER),
                quorum=majority(len(core.voters)),
            )
        for index in range(max(view.applied, view.first - 1) + 1, replica.applied + 1):
            self.entry_row("apply", life, group, index, None)
        view.applied = replica.applied
        if partition is not None and partition.table.applied_index <= replica.applied:
            add(
                "state",
                node=node,
                inc=inc,
                partition=number,
                log_index=replica.applied,
                state_hash=partition.table.digest() >> 1,
            )

    def entry_row(
        self, kind: str, life: Life, group: GroupId, index: LogIndex, aux: int | None
    ) -> None:
        """A row about one entry, *append* or *apply*."""
        seen = self.view(life.node_id, group).at(index)
        self.history.add(
            kind,
            node=life.node_id,
            inc=life.inc,
            partition=self.partitions[group],
            term=seen.term,
            log_index=index,
            off=seen.off,
            pid=seen.pid,
            epoch=seen.epoch,
            seq=seen.seq,
            seq_last=seen.seq_last,
            chain=seen.chain,
            aux=aux,
        )


class LogWatch:
    """Watches one life's store: what it was given, and when that became durable."""

    def __init__(self, observer: Observer, life: Life):
        self._observer = observer
        self._life = life
        self._unsynced: deque[tuple[int, GroupId, LogIndex, Seen]] = deque()
        """Ends of logs by the number of the append that made them."""

    def appended(self, writes: Sequence[Write]) -> None:
        """The store took these writes."""
        life = self._life
        medium = life.world.disks[life.node_id].medium
        number = medium.synced_appends + len(medium.undo)
        for write in writes:
            if not write.delete and self._observer.knows(life, write.group):
                view = self._observer.view(life.node_id, write.group)
                self._written(view, write)
                self._unsynced.append((number, write.group, view.last, view.at(view.last)))

    def _written(self, view: LogView, write: Write) -> None:
        self._promises(view, write)
        seat = self._seat(write.group)
        role = None if seat is None else seat.replica.core.role
        if write.reset:
            self._installed(view, write)
        if (write.truncate or write.entries) and write.first <= view.last:
            self._truncated(view, write, role)
        if role is Role.LEADER and seat is not None and seat.replica.core.term > view.led:
            self._leads(view, write.group, seat)
        for entry in write.entries:
            seen = view.extend(entry)
            self._observer.remember(write.group, entry.index, seen)
            leads = int(role is Role.LEADER)
            self._observer.entry_row("append", self._life, write.group, entry.index, leads)
        if write.compact_to and not write.reset:
            view.compact(write.compact_to)

    def _seat(self, group: GroupId) -> Seat | None:
        node = getattr(self._life, "node", None)  # the store is made before the node
        return None if node is None else node.runner.seats.get(group)

    def _add(self, kind: str, group: GroupId, **columns: int | str | None) -> None:
        life, observer = self._life, self._observer
        number = observer.partitions[group]
        observer.history.add(kind, node=life.node_id, inc=life.inc, partition=number, **columns)

    def _promises(self, view: LogView, write: Write) -> None:
        """Term and vote as written."""
        hard_state = write.hard_state
        if hard_state is None:
            return
        if hard_state.term != view.term:
            self._add("term", write.group, term=hard_state.term)
        if hard_state.vote != NO_NODE and (hard_state.term, hard_state.vote) != (
            view.term,
            view.vote,
        ):
            self._add("vote", write.group, term=hard_state.term, cand=hard_state.vote)
        view.term, view.vote = hard_state.term, hard_state.vote

    def _installed(self, view: LogView, write: Write) -> None:
        assert write.snapshot is not None, "a reset has a snapshot"
        meta = write.snapshot.meta
        view.reset(meta.index, self._observer.seen_at(write.group, meta.index, meta.term))
        self._add("snapshot", write.group, log_index=meta.index, term=meta.term)

    def _truncated(self, view: LogView, write: Write, role: Role | None) -> None:
        letter = "F" if role is None else role.name[0]
        self._add("truncate", write.group, log_index=write.first, code=letter, aux=view.commit)
        view.cut(write.first)

    def _leads(self, view: LogView, group: GroupId, seat: Seat) -> None:
        core = seat.replica.core
        view.led = core.term
        start = core.term_start or 0
        before = view.at(start - 1)
        self._add("leader", group, term=core.term, log_index=start, chain=before.chain)

    def synced(self, job: SyncJob) -> None:
        """Everything that the job covers survives from here on."""
        appends = cast(MemorySyncJob, job).appends
        unsynced = self._unsynced
        ends: dict[GroupId, tuple[LogIndex, Seen]] = {}
        while unsynced and unsynced[0][0] <= appends:
            _, group, last, seen = unsynced.popleft()
            ends[group] = (last, seen)
        for group, (last, seen) in ends.items():
            self._add(
                "durable",
                group,
                term=seen.term,
                log_index=last,
                off=seen.next_off,
                chain=seen.chain,
            )
