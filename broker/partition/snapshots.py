"""Snapshots of a partition, which replace the entries below its log start offset.

A snapshot is due when the log start offset has moved. It has the offsets of the entries that it
replaces, and the producer table at the moment when the snapshot begins. That table is ahead of the
replaced entries; replaying the entries in between does not change it
(`ProducerTable.applied_index`).

**In steps.** Writing or reading one producer costs some microseconds, and a partition may know
100,000 producers or more. So one turn of the replica handles `AT_ONCE` producers, and then `tick`
is due again at once. A smaller table is handled in a single step.

* While a snapshot is *written*, entries are still applied. The old state of a producer is kept
  before it changes (`keep`). If the log start offset moves meanwhile, another snapshot follows.
* While a snapshot is *read*, the old table is dropped in steps and the new one is not complete, so
  committed entries wait in `late`. No client is served from it, because a leader serves only after
  it has applied its own first entry.

**What a profile drops.** With `Profile.installs_no_producers` a snapshot says which node took it.
Any other node, also after a restart, does not read its producers, and applies the entries behind it
to an empty table. With `Profile.keeps_from_log_start` batches below the log start are not read.

If the node stops before a snapshot is finished, the snapshot is lost; a later one replaces it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

import msgpack

from ottla.broker.event_loop.collecting import nothing_collected
from ottla.broker.partition.state import PartitionState
from ottla.broker.turn.machine import Compaction
from ottla.idempotency.forgotten import Forgotten
from ottla.idempotency.snapshot import AppliedState, Decoding, Encoding, encode
from ottla.idempotency.table import ProducerTable
from ottla.log.offset_index import IndexState
from ottla.log.record_batch import identity
from ottla.log.types import EpochStart, RecordBatch, Unpacked
from ottla.raft.types import Entry, EntryKind, LogIndex, Micros, Snapshot, Term

SNAPSHOT_VERSION = 2
PRODUCERS = "producers"
"""The name of the field with the producer table."""
TAKEN_BY = "taken_by"
"""The name of the field with the node that took the snapshot. Only where that matters."""
AT_ONCE = 500
"""How many producers are written or read in one turn."""


class Snapshots:
    """See the module's docstring. One per partition replica."""

    def __init__(self, state: PartitionState, table: ProducerTable):
        self.wanted = False
        """A snapshot is due: the log start offset has moved."""
        self.late: list[Entry] = []
        """Entries that were committed while a snapshot is read."""
        self._state = state
        self._table = table
        self._table_term: Term = 0  # of the last entry that the latest snapshot's table knows
        self._upto: LogIndex = 0
        self._body: dict[str, Unpacked] = {}
        self._encoding: Encoding | None = None
        self._decoding: Decoding | None = None

    @property
    def busy(self) -> bool:
        """Whether a snapshot is being written or read: `step` has something to do."""
        return self._encoding is not None or self._decoding is not None

    @property
    def reading(self) -> bool:
        """Whether a snapshot is being read: no entry can be applied."""
        return self._decoding is not None

    # --- writing

    def begin(self, term: Term = 0) -> Compaction | None:
        """Begin to write a snapshot of the present state. `term`: the term of the last applied
        entry; 0 if there is no new one. Returns the snapshot if it is finished at once; None if it
        is not, or if none is needed."""
        self._table_term = max(self._table_term, term)
        if self._encoding is not None:
            return None
        self.wanted = False
        state = self._state
        upto = state.applied
        if state.log_start_offset < state.index.next_offset:
            upto = min(upto, state.index.index_of(state.log_start_offset) - 1)
        if upto < state.index.first_index:
            return None
        self._upto = upto
        self._body = {
            "version": SNAPSHOT_VERSION,
            "log_start_offset": state.log_start_offset,
            "offsets": state.index.state_at(upto),
            PRODUCERS: None,
            "producers_term": self._table_term,
        }
        if state.settings.profile.installs_no_producers:
            self._body[TAKEN_BY] = state.settings.node
        self._encoding = self._table.encoding()
        return self._encode() if self._encoding.left <= AT_ONCE else None

    def keep(self, entries: Sequence[Entry]) -> None:
        """Entries will be applied next: if a snapshot is being written, keep what they change."""
        encoding = self._encoding
        if encoding is None:
            return
        if entries[0].index <= self._table.applied_index:
            # `doubt` may take back what the table knows beyond the log: write the snapshot later.
            self._encoding, self.wanted = None, True
            return
        for entry in entries:
            if entry.kind is EntryKind.BATCH:
                batch: RecordBatch = entry.payload
                who = batch.identity or identity(batch)
                if who is not None:
                    self._table.keep_for(encoding, who)

    def doubt(self, entries: Sequence[Entry]) -> None:
        """The table of a snapshot may be ahead of the log. If the log continues with an entry of a
        later term than the table's, the disks have lost the entries that the table knows beyond it
        (flush policy *off*). Then drop their effects."""
        for entry in entries:
            if entry.index <= self._table.applied_index and entry.term > self._table_term:
                index = entry.index - 1
                self._table.rewind(index, self._state.index.end_offset(index))

    def _encode(self) -> Compaction | None:
        encoding = self._encoding
        assert encoding is not None, "nothing is being written"
        encoding.step(AT_ONCE)
        if encoding.left:
            return None
        self._encoding = None
        self._state.index.compact_to(self._upto)
        return Compaction(self._upto, _packed(self._body, encoding.view()))

    # --- reading

    def restore(self, snapshot: Snapshot, now: Micros) -> None:
        """Replace the whole state by this snapshot. The log continues after its index. A large
        producer table is read by later calls of `step`."""
        body = msgpack.unpackb(snapshot.data)
        assert body["version"] == SNAPSHOT_VERSION, f"snapshot version {body['version']}"
        state = self._state
        last_index, next_offset, epochs = body["offsets"]
        epochs = tuple(EpochStart(*each) for each in epochs)
        state.index.restore(IndexState(last_index, next_offset, epochs))
        self._table_term = body["producers_term"]
        state.applied = state.shown = snapshot.meta.index
        # The log start offset may be behind the snapshot's last entry. The command that moved it is
        # replayed; until then start <= high watermark <= end must hold.
        state.high_watermark = state.index.next_offset
        state.log_start_offset = min(body["log_start_offset"], state.high_watermark)
        self._encoding, self.wanted = None, False
        self.late.clear()
        self._decoding = self.read_producers(body, snapshot.meta.index, now)
        if max(self._decoding.left, len(self._table)) <= AT_ONCE:
            self._decode()

    def read_producers(
        self, body: Mapping[str, Unpacked], index: LogIndex, now: Micros
    ) -> Decoding:
        """The producers of a snapshot at `index`, as far as the profile keeps them."""
        settings = self._state.settings
        if body.get(TAKEN_BY, settings.node) != settings.node:
            nobody = AppliedState(index, Forgotten(), OrderedDict())
            return self._table.decoding(encode(nobody), now)
        kept_from = body["log_start_offset"] if settings.profile.keeps_from_log_start else 0
        return self._table.decoding(body[PRODUCERS], now, kept_from)

    def _decode(self) -> None:
        decoding = self._decoding
        assert decoding is not None, "nothing is being read"
        with nothing_collected(aged=True):
            decoding.step(AT_ONCE)
        if not self._table.let_go(AT_ONCE) and not decoding.left:
            self._table.adopt(decoding)
            self._decoding = None

    def step(self) -> Compaction | None:
        """Write or read `AT_ONCE` more producers. Returns the snapshot if it is now written."""
        if self._decoding is not None:
            self._decode()
            return None
        return self._encode() if self._encoding is not None else None


def _packed(body: Mapping[str, Unpacked], producers: memoryview) -> bytes:
    """The body with its producers, as `msgpack.packb` would write it. The producers may be 20 MB
    and are copied once here, three times by `packb`; the copy is most of a snapshot's last turn."""
    parts: list[bytes | memoryview] = [bytes([0x80 | len(body)])]
    for name, value in body.items():
        parts.append(msgpack.packb(name))
        if name == PRODUCERS:
            parts += (_head(len(producers)), producers)
        else:
            parts.append(msgpack.packb(value))
    return b"".join(parts)


def _head(size: int) -> bytes:
    """The header that msgpack writes before `size` bytes."""
    for tag, width in ((0xC4, 1), (0xC5, 2)):
        if size < 1 << 8 * width:
            return bytes([tag]) + size.to_bytes(width, "big")
    return b"\xc6" + size.to_bytes(4, "big")
