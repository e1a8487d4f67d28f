"""The model of a topic with one writer, which sends one request at a time.

Each answer to such a client follows from the answers before: each offset, each time, each refusal
of a sequence. So the model is a list of batches, the log start, and one producer. It shares no code
with the broker. A request without an answer is sent again until there is one, so nothing is
uncertain between two steps.

With one exception: whether a node that answers a reader still leads. A node that was deposed and
does not know it shows an older state, and that is correct. `sure` says that the node led in the
highest term when it was asked: then its log has everything that was acknowledged.

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
    """A batch: what is sent, and its offset."""

    values: tuple[int, ...]
    """One for each record; the time of the record follows from it."""
    pid: int
    epoch: int
    seq: int
    """The sequence of its first record."""
    off: Offset = 0

    @property
    def end(self) -> Offset:
        """The offset after its last record."""
        return self.off + len(self.values)

    @property
    def next_seq(self) -> int:
        """The sequence that follows it."""
        return (self.seq + len(self.values)) % SEQUENCES

    def encode(self, *, size: int = VALUE_BYTES, time: Millis | None = None) -> bytes:
        """Its bytes, with records of `size` bytes; `time` replaces the time of each record."""
        return encode(self.values, size, pid=self.pid, epoch=self.epoch, seq=self.seq, time=time)

    def told(self) -> tuple[object, ...]:
        """Everything that a reader sees of it."""
        times = [time_of(each) for each in self.values]
        place = (self.off, len(self.values), times[0], max(times))
        return (*place, self.pid, self.epoch, self.seq, self.values)


def seen(batch: RecordBatch, decoder: Decoder) -> tuple[object, ...]:
    """The same of a batch that was read, to compare with `Written.told`."""
    place = (batch.base_offset, batch.record_count, batch.base_timestamp, batch.max_timestamp)
    numbers = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
    return (*place, *numbers, decoder.values(batch))


class Extent(NamedTuple):
    """The offsets of the records that exist."""

    start: Offset
    end: Offset
    """Exclusive."""


class TopicModel:
    """See the module's text."""

    def __init__(self) -> None:
        self.batches: list[Written] = []
        self.coming: tuple[Written, ...] = ()
        """The batches that are being written: readers may see them before the client has its
        answer."""
        self.start: Offset = 0
        self.pid = -1
        """The id of the producer that writes now; -1 before there is one."""
        self.epoch = 0
        self.next_seq = 0
        self.ids: set[int] = set()
        """All producer ids that this client was given."""
        self._epochs: dict[Offset, int] = {}
        """The leader epochs that readers were told, by the first offset of the batch."""
        self.topics = 1
        """How many topics there have been, including this one."""

    @property
    def end(self) -> Offset:
        """The offset of the next record."""
        return self.batches[-1].end if self.batches else 0

    @property
    def extent(self) -> Extent:
        """The offsets of the records that exist now."""
        return Extent(self.start, self.end)

    def emptied(self) -> None:
        """The topic was deleted, and is created again: it knows no producer."""
        self.topics += 1
        self.batches.clear()
        self.coming = ()
        self._epochs.clear()
        self.start = self.epoch = self.next_seq = 0
        self.pid = -1

    def began(self, pid: int, first: int) -> None:
        """There is a new producer, whose first batch has the sequence `first`."""
        self.ids.add(pid)
        self.pid, self.epoch, self.next_seq = pid, 0, first

    def writes(self, batch: Written) -> None:
        """This batch is being written: after everything that is stored or being written."""
        end = self.coming[-1].end if self.coming else self.end
        self.coming += (batch._replace(off=end),)

    def stored(self, batch: Written) -> None:
        """This batch is stored at the end of the log now."""
        self.batches.append(batch._replace(off=self.end))
        self.coming = self.coming[1:]
        self.epoch, self.next_seq = batch.epoch, batch.next_seq

    def known_again(self) -> list[Written]:
        """The batches of this producer and epoch, oldest first; the broker recognises the last
        five."""
        found = []
        for each in reversed(self.batches):
            if (each.pid, each.epoch) != (self.pid, self.epoch):
                break
            found.append(each)
        return found[::-1]

    # ---- what a reader is told; `wrong_*` return what the model says, or nothing if that is right

    def first_of(self, time: Millis) -> Found:
        """The first record that is not older than that time."""
        for off, of in self._times(self.start):
            if of >= time:
                return off, of
        return NOTHING

    def largest(self) -> Found:
        """The first record with the largest time. The batch at the log start counts as a whole."""
        kept = [each for each in self.batches if each.end > self.start]
        found = NOTHING
        for off, of in self._times(kept[0].off if kept else self.start):
            if of > found[1]:
                found = off, of
        return found

    def last_deleted(self) -> int | None:
        """The value of the last record before the log start, which its batch may still hold."""
        for each in self.batches:
            if each.off < self.start <= each.end:
                return each.values[self.start - each.off - 1]
        return None

    def wrong_end(self, asked: bool, found: PartitionListed, *, sure: bool) -> str:
        """`asked`: whether the end of the log was asked for; else its beginning."""
        right = self.end if asked else self.start
        fits = found.offset == right if sure else 0 <= found.offset <= right
        return "" if fits else f"{'' if sure else 'at most '}{right}"

    def wrong_time(self, right: Found, found: PartitionListed, *, sure: bool) -> str:
        """`right`: what the model finds. A node that lags behind may find another record."""
        told = (found.offset, found.timestamp)
        times = dict(self._times(0))
        if told != right and (sure or (told != NOTHING and times.get(told[0]) != told[1])):
            return f"offset {right[0]} of time {right[1]}"
        return self._other_epoch(found.offset, found.leader_epoch) if told[0] >= 0 else ""

    def wrong_fetch(
        self, off: Offset, found: PartitionFetched, decoder: Decoder, asked: Extent, *, sure: bool
    ) -> str:
        """`off`: where the reader reads from. `asked`: what there was when it asked."""
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
        """What is wrong with the leader epoch that a reader was told for the record at an
        offset."""
        first = next((each.off for each in self.batches if each.off <= off < each.end), off)
        known = self._epochs.setdefault(first, told)
        return "" if known == told else f"leader epoch {known} of offset {off}, not {told}"
