"""The model of a topic that one client alone writes to, one request at a time.

What such a client is answered follows from what it was answered before: each offset, each time,
each refusal of a sequence. So the model is a list of batches, the log start, and one producer. It
shares no code with the broker. A request that was not answered is asked again until it is, so
between two steps nothing is uncertain.

Only one thing is: whether a node that answers a reader still leads. A node that was deposed without
its knowledge shows an older state, which is right. `sure` says that the node led in the highest
term when it was asked: then everything that was acknowledged is in its log.

Source: KIP-98; KIP-101; K-RULES; K-FETCH; K-LIST-OFFSETS.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.broker.wire.answers import PartitionFetched, PartitionListed
from ottla.log.types import NO_OFFSET, NO_TIMESTAMP, Millis, Offset, RecordBatch
from ottla.sim.world.batch import VALUE_BYTES, encode, time_of
from ottla.sim.world.decoder import Decoder
from ottla.sim.world.reference_model import SEQUENCES

Found = tuple[Offset, Millis]
"""An offset and a time."""
NOTHING: Found = (NO_OFFSET, NO_TIMESTAMP)


class Written(NamedTuple):
    """A batch: what is sent, and where it lies."""

    values: tuple[int, ...]
    """One for each record; it also gives the record its time."""
    pid: int
    epoch: int
    seq: int
    """Of its first record."""
    off: Offset = 0

    @property
    def end(self) -> Offset:
        """The offset behind it."""
        return self.off + len(self.values)

    @property
    def next_seq(self) -> int:
        """The sequence that follows it."""
        return (self.seq + len(self.values)) % SEQUENCES

    def encode(self, *, size: int = VALUE_BYTES, time: Millis | None = None) -> bytes:
        """Its bytes, with records of `size` bytes; `time`: of each record, instead of its own."""
        return encode(self.values, size, pid=self.pid, epoch=self.epoch, seq=self.seq, time=time)

    def told(self) -> tuple[object, ...]:
        """What a reader sees of it."""
        times = [time_of(each) for each in self.values]
        place = (self.off, len(self.values), times[0], max(times))
        return (*place, self.pid, self.epoch, self.seq, self.values)


def seen(batch: RecordBatch, decoder: Decoder) -> tuple[object, ...]:
    """A batch that was read, as `Written.told`."""
    place = (batch.base_offset, batch.record_count, batch.base_timestamp, batch.max_timestamp)
    numbers = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
    return (*place, *numbers, decoder.values(batch))


class Extent(NamedTuple):
    """Which records there are."""

    start: Offset
    end: Offset
    """Exclusive."""


class TopicModel:
    """See the module's text."""

    def __init__(self) -> None:
        self.batches: list[Written] = []
        self.coming: tuple[Written, ...] = ()
        """The batches that are being written: readers may see them before their client hears."""
        self.start: Offset = 0
        self.pid = -1
        """The producer that writes now; -1 before the first."""
        self.epoch = 0
        self.next_seq = 0
        self.ids: set[int] = set()
        """All producer ids that were handed out to this client."""
        self._epochs: dict[Offset, int] = {}
        """The leader epoch of each batch that a reader was told, by its first offset."""
        self.topics = 1
        """How many topics there were so far, this one included."""

    @property
    def end(self) -> Offset:
        """The offset of the next record."""
        return self.batches[-1].end if self.batches else 0

    @property
    def extent(self) -> Extent:
        """Which records there are now."""
        return Extent(self.start, self.end)

    def emptied(self) -> None:
        """The topic was deleted and made again: nobody is known in it."""
        self.topics += 1
        self.batches.clear()
        self.coming = ()
        self._epochs.clear()
        self.start = self.epoch = self.next_seq = 0
        self.pid = -1

    def began(self, pid: int, first: int) -> None:
        """A new producer, whose first batch has this sequence."""
        self.ids.add(pid)
        self.pid, self.epoch, self.next_seq = pid, 0, first

    def writes(self, batch: Written) -> None:
        """It is being written, and will lie behind all that is there or being written."""
        end = self.coming[-1].end if self.coming else self.end
        self.coming += (batch._replace(off=end),)

    def stored(self, batch: Written) -> None:
        """It lies at the end of the log now."""
        self.batches.append(batch._replace(off=self.end))
        self.coming = self.coming[1:]
        self.epoch, self.next_seq = batch.epoch, batch.next_seq

    def known_again(self) -> list[Written]:
        """The batches of this producer and epoch, oldest first; the last five are known again."""
        found = []
        for each in reversed(self.batches):
            if (each.pid, each.epoch) != (self.pid, self.epoch):
                break
            found.append(each)
        return found[::-1]

    # ---- what a reader is told: each returns what is wrong, or nothing

    def first_of(self, time: Millis) -> Found:
        """The first record that is not older than that."""
        for off, of in self._times(self.start):
            if of >= time:
                return off, of
        return NOTHING

    def largest(self) -> Found:
        """The first record with the largest time. The whole batch at the log start counts."""
        kept = [each for each in self.batches if each.end > self.start]
        found = NOTHING
        for off, of in self._times(kept[0].off if kept else self.start):
            if of > found[1]:
                found = off, of
        return found

    def wrong_end(self, asked: bool, found: PartitionListed, *, sure: bool) -> str:
        """`asked`: where the log ends, else where it begins."""
        right = self.end if asked else self.start
        fits = found.offset == right if sure else 0 <= found.offset <= right
        return "" if fits else f"{'' if sure else 'at most '}{right}"

    def wrong_time(self, right: Found, found: PartitionListed, *, sure: bool) -> str:
        """`right`: what the model finds; a node that is behind may find another record."""
        told = (found.offset, found.timestamp)
        times = dict(self._times(0))
        if told != right and (sure or (told != NOTHING and times.get(told[0]) != told[1])):
            return f"offset {right[0]} of time {right[1]}"
        return self._other_epoch(found.offset, found.leader_epoch) if told[0] >= 0 else ""

    def wrong_fetch(
        self, off: Offset, found: PartitionFetched, decoder: Decoder, asked: Extent, *, sure: bool
    ) -> str:
        """`off`: where it reads from; `asked`: what there was when it was asked."""
        there = [*self.batches, *self.coming]
        end = there[-1].end if there else 0
        if sure and not asked.start <= off <= end:
            return f"OFFSET_OUT_OF_RANGE: there are {asked.start} to {end}"
        if not (asked.end if sure else 0) <= found.high_watermark <= end:
            return f"a high watermark of {asked.end} to {end}"
        if not (asked.start if sure else 0) <= found.log_start_offset <= self.start:
            return f"a log start of {self.start}"
        if sure and off < asked.end and not found.batches:
            return "a record"
        expected = [each for each in there if each.end > off][: len(found.batches)]
        if [each.told() for each in expected] != [seen(each, decoder) for each in found.batches]:
            return " ".join(["batches", *(f"{each.off}-{each.end - 1}" for each in expected)])
        wrong = [self._other_epoch(each.base_offset, each.leader_epoch) for each in found.batches]
        return next((each for each in wrong if each), "")

    def _times(self, since: Offset) -> list[Found]:
        """Every record from that offset on."""
        return [
            (each.off + place, time_of(value))
            for each in self.batches
            if each.end > since
            for place, value in enumerate(each.values)
            if each.off + place >= since
        ]

    def _other_epoch(self, off: Offset, told: int) -> str:
        """What is wrong with the leader epoch of the record at an offset: that of its batch."""
        first = next((each.off for each in self.batches if each.off <= off < each.end), off)
        known = self._epochs.setdefault(first, told)
        return "" if known == told else f"leader epoch {known} of offset {off}, not {told}"
