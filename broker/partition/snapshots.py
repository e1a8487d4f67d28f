"""Snapshots of a partition: what replaces the entries below its log start.

A snapshot is due when the log start has moved. It has the offsets of the
entries that it replaces, and the producer table as it is when the snapshot is begun, which is ahead
of them: replaying the entries between does not change it again (`ProducerTable.applied_index`).

**In steps.** Writing the producers down, or reading them, costs some microseconds each, and a
partition may remember 100,000 of them or more. So a turn of the replica does `AT_ONCE` of them, and
`tick` is due again at once. Fewer producers are done on the spot, as if there were no steps.

* While a snapshot is *written*, entries go on being applied. What they are about to change is kept
  as it was (`keep`). If the log start moves meanwhile, the next snapshot follows.
* While one is *read*, the old table goes bit by bit and the new one is not there yet, so what is
  committed waits in `late`. Nobody is served out of it: a leader serves after it has applied its
  own first entry.

A snapshot that is not finished when the node stops was never begun: the next one makes up for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgpack

from ottla.broker.event_loop.collecting import nothing_collected
from ottla.broker.partition.state import PartitionState
from ottla.broker.turn.machine import Compaction
from ottla.idempotency.snapshot import Decoding, Encoding
from ottla.idempotency.table import ProducerTable
from ottla.log.offset_index import IndexState
from ottla.log.record_batch import identity
from ottla.log.types import EpochStart, RecordBatch, Unpacked
from ottla.raft.types import Entry, EntryKind, LogIndex, Micros, Snapshot, Term

SNAPSHOT_VERSION = 2
PRODUCERS = "producers"
"""The field for the producer table."""
AT_ONCE = 500
"""Producers written or read in one turn."""


class Snapshots:
    """See the module's text. One per partition replica."""

    def __init__(self, state: PartitionState, table: ProducerTable):
        self.wanted = False
        """The log start has moved."""
        self.late: list[Entry] = []
        """Committed while a snapshot is read."""
        self._state = state
        self._table = table
        self._table_term: Term = 0  # of the last entry that the latest snapshot's table knows
        self._upto: LogIndex = 0
        self._body: dict[str, Unpacked] = {}
        self._encoding: Encoding | None = None
        self._decoding: Decoding | None = None

    @property
    def busy(self) -> bool:
        """Whether one is being written or read: `step` has something to do."""
        return self._encoding is not None or self._decoding is not None

    @property
    def reading(self) -> bool:
        """Whether one is being read: nothing can be applied."""
        return self._decoding is not None

    # --- writing

    def begin(self, term: Term = 0) -> Compaction | None:
        """Write one of the state now; `term` is that of the entry applied last, if it is a new one.
        None: not yet, or none is needed."""
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
        self._encoding = self._table.encoding()
        return self._encode() if self._encoding.left <= AT_ONCE else None

    def keep(self, entries: Sequence[Entry]) -> None:
        """These are about to be applied while a snapshot is written."""
        encoding = self._encoding
        if encoding is None:
            return
        if entries[0].index <= self._table.applied_index:
            # What the table knows beyond its log may be taken back (`doubt`).
            self._encoding, self.wanted = None, True
            return
        for entry in entries:
            if entry.kind is EntryKind.BATCH:
                batch: RecordBatch = entry.payload
                who = batch.identity or identity(batch)
                if who is not None:
                    self._table.keep_for(encoding, who)

    def doubt(self, entries: Sequence[Entry]) -> None:
        """A snapshot's table is ahead of its log. If that goes on in a later term than the table
        was made in, what the table knows beyond is lost: disks forgot it (flush policy *off*)."""
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
        """Replace everything by this snapshot; the log goes on behind its index."""
        body = msgpack.unpackb(snapshot.data)
        assert body["version"] == SNAPSHOT_VERSION, f"snapshot version {body['version']}"
        state = self._state
        last_index, next_offset, epochs = body["offsets"]
        epochs = tuple(EpochStart(*each) for each in epochs)
        state.index.restore(IndexState(last_index, next_offset, epochs))
        self._table_term = body["producers_term"]
        state.applied = state.shown = snapshot.meta.index
        # The log start may lie behind the snapshot's last entry; the command that moved it there
        # is replayed, and until then start <= high watermark <= end must hold.
        state.high_watermark = state.index.next_offset
        state.log_start_offset = min(body["log_start_offset"], state.high_watermark)
        self._encoding, self.wanted = None, False
        self.late.clear()
        self._decoding = self._table.decoding(body[PRODUCERS], now)
        if max(self._decoding.left, len(self._table)) <= AT_ONCE:
            self._decode()

    def _decode(self) -> None:
        decoding = self._decoding
        assert decoding is not None, "nothing is being read"
        with nothing_collected(aged=True):
            decoding.step(AT_ONCE)
        if not self._table.let_go(AT_ONCE) and not decoding.left:
            self._table.adopt(decoding)
            self._decoding = None

    def step(self) -> Compaction | None:
        """Do some more; returns the snapshot if that was the last of it."""
        if self._decoding is not None:
            self._decode()
            return None
        return self._encode() if self._encoding is not None else None


def _packed(body: Mapping[str, Unpacked], producers: memoryview) -> bytes:
    """The body with its producers, as `msgpack.packb` writes it. They may be 20 MB, and are copied
    once where it would copy them three times: that is what the last turn of a snapshot takes."""
    parts: list[bytes | memoryview] = [bytes([0x80 | len(body)])]
    for name, value in body.items():
        parts.append(msgpack.packb(name))
        if name == PRODUCERS:
            parts += (_head(len(producers)), producers)
        else:
            parts.append(msgpack.packb(value))
    return b"".join(parts)


def _head(size: int) -> bytes:
    """What msgpack writes before so many bytes."""
    for tag, width in ((0xC4, 1), (0xC5, 2)):
        if size < 1 << 8 * width:
            return bytes([tag]) + size.to_bytes(width, "big")
    return b"\xc6" + size.to_bytes(4, "big")
