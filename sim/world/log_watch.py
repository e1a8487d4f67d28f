"""`LogWatch`: watches one life's store, and reports what it was given and when that became durable.

A sync covers appends, not entries. Before it ends, a later append may truncate what it covers. That
is then on the disk, but in no log. So a *durable* row speaks of the present log: up to the first
index at which an append behind the sync has cut. A row that said more would let a commit count an
entry that replaced the one that was synced (append ABA).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgpack

from ottla.broker.node.inspection import NodeView, ReplicaView
from ottla.broker.profiles.named import profile_named
from ottla.idempotency.sessions import make_table
from ottla.log.memory_store import MemorySyncJob
from ottla.log.store import SyncJob, Write
from ottla.raft.roles import Role
from ottla.raft.types import NO_NODE, GroupId, LogIndex, Snapshot
from ottla.sim.world.life import Life
from ottla.sim.world.log_view import LogView
from ottla.sim.world.observer import Observer

_EVERYTHING = 1 << 62


class _Unsynced(NamedTuple):
    """What one append did to the log of one group."""

    number: int
    """Number of the append, as the medium counts them."""
    group: GroupId
    last: LogIndex
    """Where the log ended after it."""
    kept: LogIndex
    """What was written before, up to this index, stayed as it was."""


class LogWatch:
    """See the module's docstring."""

    def __init__(self, observer: Observer, life: Life):
        self._observer = observer
        self._life = life
        self._unsynced: deque[_Unsynced] = deque()

    def started(self) -> None:
        """A life has opened its disk. What it found is durable, except for entries in the page
        cache of a machine whose process was killed, if nothing is flushed: these wait for the next
        sync."""
        life = self._life
        medium = life.disk.medium
        number = medium.synced_appends + medium.unsynced_appends
        for stored in life.store.groups():
            if stored.group not in self._observer.partitions:
                continue
            last = stored.last_index
            self._unsynced.append(_Unsynced(number, stored.group, last, _EVERYTHING))
        if not medium.unsynced_appends:
            self._durable_up_to(number)

    def appended(self, writes: Sequence[Write]) -> None:
        """The store has taken these writes."""
        life = self._life
        medium = life.disk.medium
        number = medium.synced_appends + len(medium.undo)
        for write in writes:
            if not write.delete and self._observer.knows(life, write.group):
                view = self._observer.view(life.node_id, write.group)
                cuts = write.reset or write.truncate
                kept = write.first - 1 if cuts and not write.reset else 0 if cuts else _EVERYTHING
                self._written(view, write)
                self._unsynced.append(_Unsynced(number, write.group, view.last, kept))

    def _written(self, view: LogView, write: Write) -> None:
        self._promises(view, write)
        replica = self._replica(write.group)
        role = None if replica is None else replica.role
        if write.compact_to and not write.reset and replica is not None:
            # A turn may apply the entry that moves the log start and compact the log in one go.
            # Without this, the rows of the entries that go would be missing, and a sound log would
            # seem to have skipped an entry.
            self._observer.moved(self._life, write.group)
        if write.snapshot is not None:
            self._snapshot(view, write, write.snapshot)
        if (write.truncate or write.entries) and write.first <= view.last:
            self._truncated(view, write, role)
        if role is Role.LEADER and replica is not None and replica.term > view.led:
            self._leads(view, replica)
        leads = int(role is Role.LEADER)
        applied = 0 if replica is None else replica.applied
        for entry in write.entries:
            seen = view.extend(entry)
            self._observer.written.keep(write.group, entry.index, seen, applied)
            self._observer.entry_row("append", self._life, write.group, entry.index, leads)
        in_sync = self._observer.in_sync
        if in_sync is not None and leads and write.entries:
            in_sync.wrote(self._life, write.group, view.last)
        if write.compact_to and not write.reset:
            view.compact(write.compact_to)

    def _replica(self, group: GroupId) -> ReplicaView | None:
        view: NodeView | None = getattr(self._life, "view", None)  # the store is made before it
        return None if view is None else view.replica(group)

    def _add(self, kind: str, group: GroupId, **columns: Any) -> None:
        life, observer = self._life, self._observer
        number = observer.partitions[group]
        observer.history.add(kind, node=life.node_id, inc=life.inc, partition=number, **columns)

    def _promises(self, view: LogView, write: Write) -> None:
        """Rows for the term and vote as written."""
        hard_state = write.hard_state
        if hard_state is None:
            return
        term, vote = hard_state.term, hard_state.vote
        if term != view.term:
            self._add("term", write.group, term=term)
        if vote != NO_NODE and (term, vote) != (view.term, view.vote):
            self._add("vote", write.group, term=term, cand=vote)
        view.term, view.vote = term, vote

    def _snapshot(self, view: LogView, write: Write, snapshot: Snapshot) -> None:
        meta = snapshot.meta
        if write.reset:
            view.reset(meta.index, self._observer.written.at(write.group, meta.index, meta.term))
        columns = self._told_by(write.group, snapshot, None if write.reset else self._life)
        code = "installed" if write.reset else "taken"
        self._add(
            "snapshot", write.group, log_index=meta.index, term=meta.term, code=code, **columns
        )

    def _told_by(self, group: GroupId, snapshot: Snapshot, taker: Life | None) -> dict[str, int]:
        """Log start and producer table of a partition's snapshot. `taker`: the life that took it,
        if that is this one."""
        if self._observer.partitions[group] < 0:
            return {}
        config = self._observer.config
        body: dict[str, Any] = msgpack.unpackb(snapshot.data, strict_map_key=False)
        table = make_table(profile_named(config.profile).rulebook, config.max_producers)
        table.restore(body["producers"])
        return {
            "off": body["log_start_offset"],
            "state_hash": self._observer.remnants.told(
                group, table.applied_index, table.digest() >> 1, taker
            ),
            "aux": table.applied_index,
        }

    def _truncated(self, view: LogView, write: Write, role: Role | None) -> None:
        self._add(
            "truncate",
            write.group,
            log_index=write.first,
            off=view.at(write.first - 1).next_off,
            code="F" if role is None else role.name[0],
            aux=view.commit,
        )
        view.cut(write.first)

    def _leads(self, view: LogView, replica: ReplicaView) -> None:
        term, start, partition = replica.term, replica.term_start, replica.partition
        view.led = term
        stale = 0
        if partition is not None:
            stale = sum(each < term for each in partition.terms_in_flight())
        chain = view.at(start - 1).chain
        self._add("leader", replica.group, term=term, log_index=start, chain=chain, aux=stale)
        if partition is not None:
            self._observer.metadata.add_epochs(self._life, replica)
            if self._observer.in_sync is not None:
                left = view.at(start - 1).next_off
                self._observer.in_sync.leads(self._life, replica, left)

    def synced(self, job: SyncJob) -> None:
        """Everything that the job covers survives from now on."""
        self._durable_up_to(cast(MemorySyncJob, job).appends)

    def _durable_up_to(self, appends: int) -> None:
        unsynced = self._unsynced
        ends: dict[GroupId, LogIndex] = {}
        while unsynced and unsynced[0].number <= appends:
            done = unsynced.popleft()
            ends[done.group] = done.last
        for later in unsynced:
            if later.group in ends:
                ends[later.group] = min(ends[later.group], later.kept)
        life, observer = self._life, self._observer
        for group, last in ends.items():
            seen = observer.view(life.node_id, group).at(last)
            observer.history.add(
                "durable",
                node=life.node_id,
                inc=life.inc,
                partition=observer.partitions[group],
                term=seen.term,
                log_index=last,
                off=seen.next_off,
                chain=seen.chain,
            )
