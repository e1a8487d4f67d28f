"""The audit of a partition, batch by batch: gaps, duplicates and reorders per producer. Pure.

**Theory.** A producer numbers the records it writes to a partition 0, 1, 2... within an epoch, and
the broker takes them in that order only (KIP-98). So what lies in the log can be judged by itself:

| finding | what was seen |
|---|---|
| gap | a sequence behind the next one that was due: those between are not there |
| duplicate | a sequence that is there already |
| reorder | a sequence that was missing and comes late, or an epoch older than one seen before |

A gap that is filled later was a reorder: both are told, and what is still missing is counted apart.

**What is no gap.** Retention takes records from the front of a log, compaction from its middle, and
either leaves offsets that nobody has. So the ledger counts *absent* offsets. A jump over no more
sequences than offsets went absent since the producer was last seen may be their doing, and is not
told; of a longer one the rest is. Which of its sequences those are nobody knows: what comes late of
such a gap is taken for some of the rest, for as long as there is any, and what comes late of a jump
that was not told makes up for nothing.

**Numbers.** Sequences wrap from 2^31 - 1 to 0. They are kept unwrapped, as positions that go on
counting, and a sequence means the position nearest to the one that is due. Batches of plain
producers, and control batches, have offsets but no sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ottla.log.types import Offset, ProducerEpoch, ProducerId, Sequence

SEQUENCES = 2**31
MOST_MISSING = 1_000
"""Missing ranges that are remembered of a producer; what comes late of older ones is taken for a
duplicate."""


class Kind(StrEnum):
    """What can be wrong with a sequence."""

    GAP = "gap"
    DUPLICATE = "duplicate"
    REORDER = "reorder"


class Seen(NamedTuple):
    """A batch as it lies in the log; without a producer, `producer_id` is -1. The mark of a
    transaction is one without a producer, of no size."""

    base_offset: Offset
    last_offset: Offset
    producer_id: ProducerId
    epoch: ProducerEpoch
    first_sequence: Sequence
    size: int
    """How many sequences it takes: those of records that compaction removed from it too."""
    leader_epoch: int = -1
    """Of the leader that took it; -1 where that is not known."""
    records: int | None = None
    """How many are there by now; None: all of `size`."""

    @property
    def left(self) -> int:
        """Records that compaction left in it."""
        return self.size if self.records is None else self.records


class Finding(NamedTuple):
    """Something wrong, at the batch with which it was noticed."""

    kind: Kind
    producer_id: ProducerId
    epoch: ProducerEpoch
    first: Sequence
    last: Sequence
    """The sequences it is about; a range may wrap."""
    records: int
    """How many of them: fewer than the range of a gap holds where some may have been deleted."""
    offset: Offset


class Missing(NamedTuple):
    """Positions that are not there."""

    first: int
    end: int
    """Behind the last."""
    gap: int
    """The first position of the jump that skipped them: its own, unless others came late."""


@dataclass(slots=True)
class Tail:
    """What is known of one producer in one partition."""

    epoch: ProducerEpoch
    due: int = 0
    """The position that comes next."""
    absent: int = 0
    """Offsets absent in the partition when this producer was last seen."""
    missing: list[Missing] = field(default_factory=list)
    """Positions skipped in this epoch, in order."""
    told: dict[int, int] = field(default_factory=dict)
    """By gap, how many records were told to be missing and are so still; none where it is 0."""


@dataclass(slots=True)
class Ledger:
    """Everything known of one partition: `observe` its batches in the order of the log."""

    next: Offset = 0
    """Behind the last batch observed."""
    absent: int = 0
    """Offsets below that which no batch has."""
    batches: int = 0
    plain: int = 0
    """Records of producers without an id, which cannot be audited."""
    sequenced: int = 0
    filled: int = 0
    """Records that were told to be missing and came late: so many are not missing any more."""
    tails: dict[ProducerId, Tail] = field(default_factory=dict)
    leader_epoch: int = -1
    """The last one seen: in one log they never fall."""

    def observe(self, batch: Seen) -> list[Finding]:
        """Take in the next batch; what is wrong with it."""
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
            # Whatever is absent may have been this producer's.
            tail = self.tails[batch.producer_id] = Tail(batch.epoch)
        elif batch.epoch < tail.epoch:
            return [_finding(Kind.REORDER, batch, (batch.first_sequence, batch.size))]
        elif batch.epoch > tail.epoch:
            tail.epoch, tail.due, tail.missing, tail.told = batch.epoch, 0, [], {}
        return list(self._judge(batch, tail))

    def _judge(self, batch: Seen, tail: Tail) -> Iterator[Finding]:
        """A batch of the epoch that is current."""
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
    """Remember that positions from the one due to `first` are missing, so many of them told."""
    skipped = Missing(tail.due, first, tail.due)
    tail.missing = [*tail.missing, skipped][-MOST_MISSING:]
    if lost > 0:
        tail.told[skipped.gap] = lost
    oldest = tail.missing[0].gap
    tail.told = {gap: records for gap, records in tail.told.items() if gap >= oldest}


def _again(batch: Seen, tail: Tail, first: int, end: int) -> Iterator[Finding]:
    """Positions `first .. end` below the one due: those that are missing come late, and are not
    missing any more; the others are there already."""
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
