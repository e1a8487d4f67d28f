"""The audit of a partition, batch by batch: gaps, duplicates and reorders per producer. Pure.

**Theory.** A producer numbers the records that it writes to a partition 0, 1, 2... within an epoch,
and the broker takes them only in that order (KIP-98). So the log can be judged by itself:

| finding | what was seen |
|---|---|
| gap | a sequence after the next one that was due: those in between are missing |
| duplicate | a sequence that is there already |
| reorder | a sequence that was missing and comes late, or an epoch older than one seen before |

A gap that is filled later was a reorder: both are reported, and what is still missing is counted
separately.

**What is no gap.** Retention takes records from the front of a log, compaction from its middle;
both leave offsets without a record. So the ledger counts *absent* offsets. If a jump skips no more
sequences than offsets went absent since the producer was last seen, it may come from that, and is
not reported. Of a longer jump only the rest is reported. Which of its sequences these are is
unknown. So a late record of such a gap counts as one of the rest, as long as some are left; and a
late record of a jump that was not reported changes nothing.

**Numbers.** Sequences wrap from 2^31 - 1 to 0. They are kept unwrapped, as positions that keep
growing; a sequence means the position nearest to the one that is due. Batches of plain producers,
and control batches, have offsets but no sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ottla.log.types import Offset, ProducerEpoch, ProducerId, Sequence

SEQUENCES = 2**31
MOST_MISSING = 1_000
"""Missing ranges of a producer that are remembered; a late record of an older one counts as a
duplicate."""


class Kind(StrEnum):
    """What can be wrong with a sequence."""

    GAP = "gap"
    DUPLICATE = "duplicate"
    REORDER = "reorder"


class Seen(NamedTuple):
    """A batch in the log; without a producer, `producer_id` is -1. The marker of a transaction is a
    batch without a producer, of size 0."""

    base_offset: Offset
    last_offset: Offset
    producer_id: ProducerId
    epoch: ProducerEpoch
    first_sequence: Sequence
    size: int
    """How many sequences it takes, including those of records that compaction removed."""
    leader_epoch: int = -1
    """Epoch of the leader that took it; -1: not known."""
    records: int | None = None
    """How many records it has now; None: all of `size`."""

    @property
    def left(self) -> int:
        """Records that compaction left in it."""
        return self.size if self.records is None else self.records


class Finding(NamedTuple):
    """An error, at the batch that showed it."""

    kind: Kind
    producer_id: ProducerId
    epoch: ProducerEpoch
    first: Sequence
    last: Sequence
    """The sequences that it is about; a range may wrap."""
    records: int
    """How many of them; for a gap fewer than its range if some may have been deleted."""
    offset: Offset


class Missing(NamedTuple):
    """Positions that are not there."""

    first: int
    end: int
    """The position after the last."""
    gap: int
    """The first position of the jump that skipped them; its own first, unless others of the jump
    came late."""


@dataclass(slots=True)
class Tail:
    """What is known of one producer in one partition."""

    epoch: ProducerEpoch
    due: int = 0
    """The next position."""
    absent: int = 0
    """The ledger's `absent` when this producer was last seen."""
    missing: list[Missing] = field(default_factory=list)
    """Positions skipped in this epoch, in order."""
    told: dict[int, int] = field(default_factory=dict)
    """By gap, how many of its records were reported as missing and still are; gaps with 0 are left
    out."""


@dataclass(slots=True)
class Ledger:
    """Everything known of one partition: `observe` its batches in the order of the log."""

    next: Offset = 0
    """The offset after the last batch observed."""
    absent: int = 0
    """Offsets below `next` that no batch has."""
    batches: int = 0
    plain: int = 0
    """Records of producers without an id, which cannot be audited."""
    sequenced: int = 0
    filled: int = 0
    """Records that were reported as missing and came late: they are no longer missing."""
    tails: dict[ProducerId, Tail] = field(default_factory=dict)
    leader_epoch: int = -1
    """The last leader epoch seen: in one log they never fall."""

    def observe(self, batch: Seen) -> list[Finding]:
        """Take in the next batch; returns what is wrong with it."""
        self.absent += max(0, batch.base_offset - self.next)
        self.next = batch.last_offset + 1
        self.leader_epoch = max(self.leader_epoch, batch.leader_epoch)
        self.batches += 1
        if batch.producer_id < 0:
            self.plain += batch.left
            return []
        self.sequenced += batch.left
        tail = self.tails.get(batch.producer_id)
        if tail is None:
            # All absent offsets may have been this producer's.
            tail = self.tails[batch.producer_id] = Tail(batch.epoch)
        elif batch.epoch < tail.epoch:
            return [_finding(Kind.REORDER, batch, (batch.first_sequence, batch.size))]
        elif batch.epoch > tail.epoch:
            tail.epoch, tail.due, tail.missing, tail.told = batch.epoch, 0, [], {}
        return list(self._judge(batch, tail))

    def _judge(self, batch: Seen, tail: Tail) -> Iterator[Finding]:
        """Judge a batch of the current epoch."""
        first = _position(batch.first_sequence, tail.due)
        end = first + batch.size
        if first > tail.due:
            skipped = first - tail.due
            lost = skipped - (self.absent - tail.absent)
            _skip(tail, first, lost)
            if lost > 0:
                yield _finding(Kind.GAP, batch, (tail.due, skipped), lost)
        elif first < tail.due:
            told = sum(tail.told.values())
            yield from _again(batch, tail, first, min(end, tail.due))
            self.filled += told - sum(tail.told.values())
        tail.due = max(tail.due, end)
        tail.absent = self.absent


def _position(sequence: Sequence, due: int) -> int:
    """The position nearest to `due` that a sequence can mean; never below the first."""
    ahead = (sequence - due) % SEQUENCES
    behind = SEQUENCES - ahead
    return due + ahead if ahead <= behind or due < behind else due - behind


def _skip(tail: Tail, first: int, lost: int) -> None:
    """Remember that the positions from the one due to `first` are missing; `lost`: how many are
    reported."""
    skipped = Missing(tail.due, first, tail.due)
    tail.missing = [*tail.missing, skipped][-MOST_MISSING:]
    if lost > 0:
        tail.told[skipped.gap] = lost
    oldest = tail.missing[0].gap
    tail.told = {gap: records for gap, records in tail.told.items() if gap >= oldest}


def _again(batch: Seen, tail: Tail, first: int, end: int) -> Iterator[Finding]:
    """Positions from `first` to `end`, below the one due: missing ones come late, and are no longer
    missing; the others are there already."""
    at = first
    left: list[Missing] = []
    for each in tail.missing:
        begin, stop, gap = each
        late, until = max(begin, at), min(stop, end)
        if late >= until:
            left.append(each)
            continue
        if at < late:
            yield _finding(Kind.DUPLICATE, batch, (at, late - at))
        yield _finding(Kind.REORDER, batch, (late, until - late))
        left += [
            Missing(*part, gap) for part in ((begin, late), (until, stop)) if part[0] < part[1]
        ]
        _come(tail, gap, until - late)
        at = until
    tail.missing = left
    if at < end:
        yield _finding(Kind.DUPLICATE, batch, (at, end - at))


def _come(tail: Tail, gap: int, records: int) -> None:
    """So many records of a gap came late."""
    still = tail.told.pop(gap, 0) - records
    if still > 0:
        tail.told[gap] = still


def _finding(
    kind: Kind, batch: Seen, positions: tuple[int, int], records: int | None = None
) -> Finding:
    """A finding about so many positions from the first."""
    first, count = positions
    return Finding(
        kind,
        batch.producer_id,
        batch.epoch,
        first % SEQUENCES,
        (first + count - 1) % SEQUENCES,
        count if records is None else records,
        batch.base_offset,
    )
