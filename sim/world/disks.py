"""Disks: how long a sync takes, what a crash leaves, what breaks.

A `SimDisk` is a machine's medium (`ottla.log.memory_disk.MemoryDisk`) and the time that its syncs
take. It outlives the lives of its node. Its recovery is the LMDB store's.

| fault | what happens |
|---|---|
| slow sync (sim-D1) | it takes a hundred times as long; drawn for each sync, at a rate |
| stall (sim-D1) | no sync ends before `stalled_until` |
| crash (sim-D2) | of the unsynced appends the oldest few survive; how many is drawn |
| kill (sim-P1) | as a crash, but what is in the page cache survives |
| torn tail (sim-D3) | the last of the appends that survive is damaged: recovery cuts it off |
| error (sim-D4) | a sync fails; the store refuses everything afterwards |
| lost sync (sim-D2, beyond the budget) | a sync reports success and has kept nothing |
| old copy (sim-D6, beyond the budget) | the disk is what it was some time ago |
| wiped (sim-D6) | the disk is empty: its node must refuse to start |
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from ottla.broker.config import FlushPolicy
from ottla.broker.node.disks import CLUSTER_ID_KEY, knows
from ottla.log.errors import StoreError
from ottla.log.memory_disk import Image, MemoryDisk, Replaced
from ottla.log.records import records_of
from ottla.log.types import RecordBatch
from ottla.raft.types import Entry, GroupId, LogIndex, Micros, NodeId
from ottla.sim.chance.choices import Choices
from ottla.sim.chance.delays import exponential
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.kernel import Kernel

CLUSTER_ID = "simulated"
SLOW_TIMES = 100


class SimDisk:
    """See the module's docstring. Choices: stream `disk N`."""

    def __init__(self, node: NodeId, kernel: Kernel, choices: Choices, config: RunConfig):
        self.medium = MemoryDisk()
        self.medium.defer_syncs = True
        self.stream = choices.stream(f"disk {node}")
        self.stalled_until: Micros = 0
        self.held_until: Micros = 0
        """When the last sync ends that is slow or that a stall holds up; `heal` ends none."""
        self._hangs = False
        self._hung: list[Callable[[], None]] = []
        self.quiet = False
        """Nothing goes wrong any more."""
        self.damage_kept = "M32" in config.mutants
        """Whether recovery ignores checksums: torn entries are read as they are."""
        self.lies = False
        """Whether syncs report success and keep nothing: no Raft survives that."""
        self.medium.meta[CLUSTER_ID_KEY] = CLUSTER_ID.encode()
        self._copy: dict[GroupId, Image] = {}
        self.cached = 0
        """Appends up to that number are in the page cache. Only a loss of power takes them, and
        only if no sync has made them durable. Usually there are none, because a commit ends with a
        sync. But without flushes they stay there, and so they do if a sync only pretends."""
        self.rotten = False
        """Whether something that was synced was damaged: no node starts on it."""
        self._lasting = False
        """Whether all that the last life left behind is on the disk."""
        self._kernel = kernel
        self._config = config

    def sync(self, ended: Callable[[], None]) -> None:
        """Call `ended` when a sync that begins now has ended."""
        config, stream, now = self._config, self.stream, self._kernel.now
        if self._unflushed:
            self.cached = self._newest
        span = config.sync_us + exponential(stream, config.sync_jitter_us)
        slow = not self.quiet and stream.chance(config.slow_sync_ppm)
        ends = max(now + span * (SLOW_TIMES if slow else 1), self.stalled_until)
        if self._hangs:
            self._hung.append(ended)
            return
        if ends > now + span:
            self.held_until = max(self.held_until, ends)
        self._kernel.at(ends, ended)

    def stall(self, span: Micros) -> None:
        """No sync ends within `span`. A stall that began earlier may last longer."""
        self.stalled_until = max(self.stalled_until, self._kernel.now + span)

    @property
    def stalls(self) -> bool:
        """Whether a sync that begins now is held up."""
        return self._hangs or self.stalled_until > self._kernel.now

    def hang(self) -> None:
        """No sync ends any more."""
        self._hangs = True

    def go_on(self) -> None:
        """Syncs that hung end now."""
        self._hangs = False
        hung, self._hung = self._hung, []
        for ended in hung:
            self._kernel.after(self._config.sync_us, ended)

    def fail(self, text: str) -> None:
        """The next sync fails, and the store with it."""
        self.medium.fail_syncs(StoreError(text))

    def rot(self, group: GroupId, index: LogIndex) -> None:
        """Damage an entry that was synced; only while its node is dead."""
        self.rotten = True
        self.medium.damage(group, index)

    @property
    def fresh(self) -> bool:
        """Whether it has no mark that says it belongs to this cluster."""
        return not knows(CLUSTER_ID, self.medium.meta.get(CLUSTER_ID_KEY))

    def keep_copy(self) -> None:
        """Keep a copy of its present state, for `restore`."""
        for group, image in self.medium.images.items():
            self._copy[group] = kept = copy(image)
            kept.entries = image.entries[:]

    def restore(self) -> None:
        """Return to the state of the copy; only while its node is dead."""
        self._forget()
        self.medium.images.update(self._copy)

    def wipe(self) -> None:
        """Erase it; only while its node is dead."""
        self._forget()
        self.medium.images.clear()
        self.medium.meta.clear()

    def _forget(self) -> None:
        """Nothing on it can be undone any more, and nothing is in a cache."""
        self.medium.undo.clear()
        self.cached = min(self.cached, self._newest)

    def heal(self) -> None:
        """Syncs are neither slow nor about to fail any more."""
        self.stalled_until = 0
        self.go_on()
        self.medium.sync_error = None
        self.lies = False

    def crash(self, *, power: bool, torn: bool = False) -> int:
        """A process dies, or (`power`) its machine does: returns how many appends are lost.

        A store stages its appends in the process; they leave it with the commit that a sync is. So
        a process that is killed (signal 9) loses appends too, but only whole ones, and none in the
        page cache. `torn`: the power fails in the middle of the newest append, so all before it is
        there, and a part of it.
        """
        if self._lasting:
            return 0
        medium, stream = self.medium, self.stream
        unsynced = medium.unsynced_appends
        torn = torn and unsynced > 0
        takes = unsynced if power else min(unsynced, self._newest - self.cached)
        assert takes >= 0, f"{self.cached} appends are in the cache, and {self._newest} were made"
        lost = 0 if torn or not takes else stream.below(takes + 1)
        kept = unsynced - lost
        if not torn:
            torn = power and kept > 0 and lost > 0 and stream.below(4) == 1
        medium.crash(kept)
        self.cached = min(self.cached, self._newest)
        self._lasting = power or not (self._unflushed or self.lies)
        if torn:
            self._tear()
        return lost

    def opened(self) -> None:
        """A new life has read the medium. What survived a loss of power was on it, not in a cache;
        and a store flushes what it finds, if it flushes at all. So nothing can take it away any
        more."""
        if self._lasting:
            self._lasting = False
            self.medium.sync(self._newest)

    @property
    def _newest(self) -> int:
        """Number of the newest append."""
        return self.medium.synced_appends + self.medium.unsynced_appends

    @property
    def _unflushed(self) -> bool:
        """Whether commits do not wait for a sync."""
        return self._config.flush == FlushPolicy.OFF.value

    def log_end(self, group: GroupId) -> LogIndex:
        """Where a dead node's log ends when its next life opens it."""
        image = self.medium.images[group]
        return min((image.last_index, *(each - 1 for each in image.damaged)))

    def _tear(self) -> None:
        """Damage the newest append that no sync covers: a torn write, which recovery finds."""
        for record in self.medium.undo[-1]:
            if isinstance(record, tuple):
                image, length, _ = record
                added = len(image.entries) > length
            elif isinstance(record, Replaced):
                if record.group not in self.medium.images:
                    continue
                image = self.medium.images[record.group]
                added = image.last_index > record.safe and bool(image.entries)
            else:
                continue
            if added and self.damage_kept:
                image.entries[-1] = _damaged(image.entries[-1])
            elif added:
                self.medium.damage(image.group, image.last_index)


def _damaged(entry: Entry) -> Entry:
    """The entry as its bytes are read after a torn write: its last record is a different one."""
    batch = entry.payload
    if not isinstance(batch, RecordBatch):
        return entry
    torn = copy(batch)
    last = list(records_of(batch))[-1]
    place = len(batch.data) - 1 - len(last.value or b"")  # behind a value stands a count of headers
    torn.data = batch.data[:place] + bytes((batch.data[place] ^ 0x40,)) + batch.data[place + 1 :]
    return Entry(entry.index, entry.term, entry.kind, torn)
