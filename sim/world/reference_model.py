"""The reference model: what idempotent produce means, in plain Python, without any concern for
speed.

The broker keeps a table per producer, flights over it, facts in bits and rules compiled from rows.
The model keeps only the log. *What is to be done with a batch follows from the batches that precede
it*: those in this leader's log, and those on their way into it. It is derived anew for every
request:

    no batch of that id before it          a beginning, if it starts at 0 (or may have been known)
    an epoch older than that of the last   stale
    a newer one                            a beginning, if it starts at 0
    one of the last five committed         a duplicate of it
    one that is not committed yet          to be parked on it
    follows the last                       next
    anything else                          a gap

A decision to forget a producer is in the log too. Batches of the producer before it do not count.
The model shares no code with `ottla.idempotency` except the words for refusals. If the two differ
on any request of any run, one of them is wrong (sim-I35).

`Replay` is the other half: the producer state that follows from the committed log. The table of
every replica must be equal to it (sim-I25), however the replica got it.

Source: promise-R2; KIP-98 and KIP-360; K-RULES; decision 0012 for unknown producers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgpack

from ottla.log.types import RecordBatch
from ottla.raft.types import Entry, EntryKind, LogIndex, Term

ACCEPT, DUPLICATE, PARK = "accept", "duplicate", "park"
MALFORMED, STALE, EPOCH_START, GAP = "malformed", "stale epoch", "epoch start", "gap"
FULL, UNKNOWN = "table full", "unknown producer"
WINDOW = 5
"""How many committed batches of a producer are recognised as duplicates (KIP-98)."""
MEMORY = 1_000
"""How many forgotten producers the log remembers, with their last epoch and sequence (decision
0012)."""
SEQUENCES = 1 << 31
EPOCHS = 1 << 15
NO_EPOCH = -1


class Modelled(NamedTuple):
    """What distinguishes the profiles that are modelled."""

    strict: bool = False
    """An unknown producer may start at a sequence other than 0 only if it was forgotten (decision
    0012)."""
    appended: bool = False
    """The window counts batches from their append on, committed or not (K-SEQUENCE)."""
    one_state: bool = False
    """A producer has one state for all epochs: another model (`one_state_model.py`)."""
    wraps: bool = True
    """A batch may lie across the wrap."""
    from_zero: bool = False
    """An unknown producer starts at 0, also if it was forgotten (before KIP-360)."""


MODELLED = {
    "reference": Modelled(),
    "reference-strict": Modelled(strict=True),
    "kafka-4.3": Modelled(appended=True),
    "kafka-3.9": Modelled(appended=True),
    "kafka-2.8": Modelled(appended=True),
    "kafka-2.4": Modelled(appended=True, from_zero=True),
    "redpanda-24.3": Modelled(one_state=True, wraps=False),
    "redpanda-25.3": Modelled(one_state=True),
}
"""The profiles that the model covers, by name."""


class Stored(NamedTuple):
    """A batch in the log or on its way into it; without sequences: the decision to forget a
    producer."""

    log_index: LogIndex
    """0: it is not in the log yet."""
    epoch: int = NO_EPOCH
    first: int = -1
    last: int = -1
    off: int = -1

    @property
    def forgets(self) -> bool:
        """Whether it is a decision to forget: what precedes it does not count."""
        return self.first < 0


class Opinion(NamedTuple):
    """What is to be done with a batch."""

    code: str
    off: int | None = None
    """Of a duplicate: the offset of the original."""


class LogModel:
    """One replica's log, by producer. It is told of every entry that is appended or truncated."""

    def __init__(self, profile: str, max_producers: int):
        self._strict, self._appended = MODELLED[profile][:2]
        self._from_zero = MODELLED[profile].from_zero
        self._max_producers = max_producers
        self._lines: dict[int, list[Stored]] = {}
        self._order: list[tuple[LogIndex, Term, int]] = []
        """The producer of each entry, so that truncation finds it."""
        self._forgot: list[tuple[LogIndex, int, int, int]] = []
        """Where the log forgets a known producer: index, producer id, its last epoch and
        sequence."""
        self._floor = -1
        """Any id up to this one may have been forgotten: so says a snapshot."""
        self._base: LogIndex = 0
        """Up to this index the batches come from a snapshot, and its state covers what the log
        repeats."""
        self._base_term: Term = 0
        self._doubtful: set[int] = set()
        """Producers whose batches before the log are unknown: a snapshot knew more of them than the
        log that now follows has."""

    # ---- the log

    def appended(self, entries: Iterable[Entry]) -> None:
        """These entries are at the end of the log now."""
        for entry in entries:
            if entry.index <= self._base:
                if entry.term > self._base_term:
                    self._lose_base(entry.index)
                else:
                    continue
            batch: Any = entry.payload
            if entry.kind is EntryKind.BATCH and batch.producer_id >= 0:
                self._put(batch.producer_id, stored(batch, entry.index), entry.term)
            elif entry.kind is EntryKind.COMMAND:
                for producer_id in forgotten_by(batch):
                    if known(line := self._lines.get(producer_id, ())):
                        self._forgot.append((entry.index, producer_id, *end_of(line)))
                    self._put(producer_id, Stored(entry.index), entry.term)

    def _put(self, producer_id: int, item: Stored, term: Term) -> None:
        self._lines.setdefault(producer_id, []).append(item)
        self._order.append((item.log_index, term, producer_id))

    def truncated(self, first: LogIndex) -> None:
        """Entries from `first` on are gone."""
        while self._order and self._order[-1][0] >= first:
            _, _, producer_id = self._order.pop()
            self._lines[producer_id].pop()
        while self._forgot and self._forgot[-1][0] >= first:
            self._forgot.pop()

    def restored(self, table: bytes, term: Term) -> None:
        """A snapshot replaces everything. `table` is its producer state, which may be ahead of the
        log that follows; the last entry in it has term `term`."""
        self._lines.clear()
        self._order.clear()
        self._doubtful.clear()
        _, self._base, forgot, producers = msgpack.unpackb(table)
        self._floor, forgot = forgot or (-1, [])
        self._base_term = term
        self._forgot = [(0, *each) for each in forgot]
        for producer_id, epoch, index, window in producers:
            line = [Stored(index, epoch, first, last, off) for first, last, off, _ in window]
            self._lines[producer_id] = line or [Stored(index, epoch, 0, -1)]

    def _lose_base(self, index: LogIndex) -> None:
        """From `index` on another log follows the snapshot than the one that the snapshot knew:
        disks lost entries."""
        self._base = index - 1
        for producer_id, line in list(self._lines.items()):
            if line and line[-1].log_index >= index:
                del self._lines[producer_id]
                self._doubtful.add(producer_id)

    # ---- opinions

    def opinion(
        self, identity: tuple[int, int, int, int], committed: LogIndex, ahead: Sequence[Ahead]
    ) -> Opinion | None:
        """What is to be done with a batch of `identity` (producer id, epoch, first and last
        sequence), if the log is committed up to `committed` and `ahead` will precede it. None: it
        does not follow from the log, which takes a fault beyond the budget."""
        producer_id, epoch, first, last = identity
        if not (
            producer_id >= 0
            and NO_EPOCH <= epoch < EPOCHS
            and 0 <= first < SEQUENCES
            and 0 <= last < SEQUENCES
        ):
            return Opinion(MALFORMED)
        if producer_id in self._doubtful:
            return None
        line = [*self._lines.get(producer_id, ())]
        line += [item for whose, item in ahead if whose == producer_id]
        line = _since_forgotten(line)
        if not line:
            return None if self._doubtful else self._of_nobody(producer_id, epoch, first, ahead)
        newest = line[-1]
        if NO_EPOCH in (epoch, newest.epoch) and epoch <= newest.epoch:
            return self._without_epoch(line, identity, committed)
        if epoch < newest.epoch:
            return Opinion(STALE)
        if epoch > newest.epoch:
            if newest.epoch == NO_EPOCH:
                return self._of_unknown(producer_id, epoch, first, ahead)
            return Opinion(ACCEPT if first == 0 else EPOCH_START)
        seen = self._seen(line, identity, committed)
        if seen is not None:
            return seen
        follows = first == (newest.last + 1) % SEQUENCES
        return Opinion(ACCEPT if follows else GAP)

    def _of_nobody(
        self, producer_id: int, epoch: int, first: int, ahead: Sequence[Ahead]
    ) -> Opinion:
        full = self._full(ahead)
        return Opinion(FULL) if full else self._of_unknown(producer_id, epoch, first, ahead)

    def _of_unknown(
        self, producer_id: int, epoch: int, first: int, ahead: Sequence[Ahead]
    ) -> Opinion:
        if first == 0 or not (self._strict or self._from_zero):
            return Opinion(ACCEPT)
        if self._from_zero:
            return Opinion(UNKNOWN)
        ends = {whose: end for _, whose, *end in self._forgot}
        floor, left = remembered(ends, self._floor)
        if producer_id <= floor:
            return Opinion(ACCEPT)
        end = next((end for whose, *end in left if whose == producer_id), None)
        line = self._lines.get(producer_id, ())
        if known(line) and any(whose == producer_id and item.forgets for whose, item in ahead):
            end = [*end_of(line)]
        return Opinion(ACCEPT if end is not None and goes_on(epoch, first, *end) else GAP)

    def _full(self, ahead: Sequence[Ahead]) -> bool:
        if len(self._lines) + len(ahead) < self._max_producers:
            return False
        last = {whose: line[-1] for whose, line in self._lines.items() if line}
        last.update(ahead)
        return sum(not item.forgets for item in last.values()) >= self._max_producers

    def _seen(
        self, line: Sequence[Stored], identity: tuple[int, int, int, int], committed: LogIndex
    ) -> Opinion | None:
        """What is to be done with a batch that equals one of the recent ones; None: it does
        not."""
        _, epoch, first, last = identity
        recent = 0
        for item in reversed(line):
            if item.epoch != epoch:
                return None
            done = 0 < item.log_index <= committed
            recent += done or self._appended
            if recent > WINDOW:
                return None
            if (item.first, item.last) == (first, last):
                return Opinion(DUPLICATE, item.off) if done else Opinion(PARK)
        return None

    def _without_epoch(
        self, line: Sequence[Stored], identity: tuple[int, int, int, int], committed: LogIndex
    ) -> Opinion:
        """A batch without an epoch (-1). No order of sequences holds for it. A producer that has an
        epoch fences it. Only an equal batch is recognised (K-NO-EPOCH)."""
        if line[-1].epoch != NO_EPOCH:
            return Opinion(STALE)
        return self._seen(line, identity, committed) or Opinion(ACCEPT)


Ahead = tuple[int, Stored]
"""Producer id, and an item of it that is on its way into the log."""


def stored(batch: RecordBatch, index: LogIndex) -> Stored:
    """A batch as its header describes it (KIP-98: the last sequence may have wrapped)."""
    first = batch.base_sequence
    last = (first + batch.last_offset_delta) % SEQUENCES
    return Stored(index, batch.producer_epoch, first, last, batch.base_offset)


def _since_forgotten(line: list[Stored]) -> list[Stored]:
    """The part of a producer's items after the last decision to forget it."""
    for place in range(len(line) - 1, -1, -1):
        if line[place].first < 0:  # `Stored.forgets`, without the call
            return line[place + 1 :]
    return line


def known(line: Sequence[Stored]) -> bool:
    """Whether the last item of a producer is a batch."""
    return len(line) > 0 and not line[-1].forgets


def forgotten_by(command: bytes) -> list[int]:
    """The producers that a command in the log forgets."""
    name, argument = msgpack.unpackb(command)
    return list(argument) if name == "expire" else []


def remembered(
    forgotten: Mapping[int, Sequence[int]], floor: int = -1
) -> tuple[int, list[list[int]]]:
    """The newest `MEMORY` of all forgotten producers by id, with their last epoch and sequence,
    after a bound: any id up to it may have been forgotten."""
    ids = sorted(each for each in forgotten if each > floor)
    bound = floor if len(ids) <= MEMORY else ids[-MEMORY - 1]
    return bound, [[each, *forgotten[each]] for each in ids[-MEMORY:]]


def end_of(line: Sequence[Stored]) -> tuple[int, int]:
    """Epoch and sequence of the last batch of a producer."""
    return line[-1].epoch, line[-1].last


def goes_on(epoch: int, first: int, of: int, tail: int) -> bool:
    """Whether a batch is the next one after `tail` of epoch `of`; `-1` for either means unknown, so
    anything follows."""
    return epoch == of and (-1 in (of, tail) or first == (tail + 1) % SEQUENCES)


class Replay:
    """The producer state of a committed log, entry by entry."""

    def __init__(self) -> None:
        self.applied: LogIndex = 0
        self._forgotten: dict[int, tuple[int, int]] = {}
        self.producers: dict[int, list[Any]] = {}
        """By id: epoch, index of the last entry, the last batches."""

    def applies(self, entries: Iterable[Entry]) -> None:
        """These entries are committed. Entries that are known already, or not next, are skipped."""
        for entry in entries:
            if entry.index == self.applied + 1:
                self.applied = entry.index
                self._apply(entry)

    def _apply(self, entry: Entry) -> None:
        batch: Any = entry.payload
        if entry.kind is EntryKind.COMMAND:
            for producer_id in forgotten_by(batch):
                left = self.producers.pop(producer_id, None)
                if left is not None:
                    self._forgotten[producer_id] = left[0], left[2][-1][1]
        elif entry.kind is EntryKind.BATCH and batch.producer_id >= 0:
            item = stored(batch, entry.index)
            known, _, window = self.producers.get(batch.producer_id, (None, 0, []))
            epoch, window = self._window((known, window), item.epoch)
            window = [*window, [item.first, item.last, item.off, batch.max_timestamp]][-WINDOW:]
            self.producers[batch.producer_id] = [epoch, entry.index, window]

    def _window(self, known: tuple[int | None, list[Any]], epoch: int) -> tuple[int, list[Any]]:
        """The epoch of a producer with a batch of `epoch`, and its batches before that; `known`:
        the epoch and the batches up to now."""
        return epoch, known[1] if known[0] == epoch else []

    def digest(self) -> int:
        """The upper half of `ProducerTable.digest` for a table in this state."""
        told = sorted([producer_id, *state] for producer_id, state in self.producers.items())
        forgotten = self._forgotten and remembered(self._forgotten)
        packed = msgpack.packb([forgotten or False, told])
        return int.from_bytes(blake2b(packed, digest_size=8).digest(), "big") >> 1
