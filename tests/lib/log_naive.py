"""Records read in the plainest way, all at once: what the walk in slices is compared with."""

from __future__ import annotations

from ottla.log.errors import InflateError
from ottla.log.inflate import inflate
from ottla.log.inspection import NO_CLOCK, UNLIMITED
from ottla.log.record_batch import BatchDefect
from ottla.log.types import Millis, RecordBatch


class BrokenError(Exception):
    """These are no records."""


class LengthError(Exception):
    """A record's length has more than five bytes."""


class Reader:
    """Numbers and fields, one behind the other."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def number(self, most: int, error: type[Exception] = BrokenError) -> int:
        """One of at most so many bytes."""
        raw = 0
        for place in range(most):
            if self.at >= len(self.data):
                raise BrokenError
            byte = self.data[self.at]
            self.at += 1
            raw |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                raw %= 2**32 if most == 5 else 2**64
                return raw // 2 if raw % 2 == 0 else -(raw // 2) - 1
        raise error

    def field(self, *, may_be_null: bool = True) -> None:
        """Pass over one behind its size."""
        size = self.number(5)
        if size < 0 and not may_be_null:
            raise BrokenError
        self.at += max(size, 0)
        if self.at > len(self.data):
            raise BrokenError


def read(data: bytes, count: int, *, exact: bool) -> list[tuple[int, int]]:
    """Time delta and number of each record."""
    reader, found = Reader(data), []
    for _ in range(count):
        end = reader.number(5, LengthError) + reader.at
        reader.at += 1
        time, number = reader.number(10), reader.number(5)
        reader.field()
        reader.field()
        headers = reader.number(5)
        if headers < 0:
            raise BrokenError
        for _ in range(headers):
            reader.field(may_be_null=False)
            reader.field()
        if exact and reader.at != end:
            raise BrokenError
        found.append((time, number))
    if reader.at != len(data):
        raise BrokenError
    return found


def judged(
    batch: RecordBatch, now: Millis, limit: int, after: Millis = 3_600_000
) -> BatchDefect | Millis:
    """What becomes of an unflagged batch on a topic without configs: a defect, or the largest
    time."""
    codec = batch.codec
    try:
        records = read(
            inflate(codec, memoryview(batch.data)[61:], limit), batch.record_count, exact=not codec
        )
    except InflateError:
        return BatchDefect.NOT_INFLATABLE
    except LengthError:
        return BatchDefect.BROKEN_RECORDS if codec else BatchDefect.ENDLESS_LENGTH
    except BrokenError:
        return BatchDefect.BROKEN_RECORDS
    times = [(batch.base_timestamp + time + 2**63) % 2**64 - 2**63 for time, _ in records]
    late = [now - each < -after or now - each > UNLIMITED for each in times if each != -1]
    if now != NO_CLOCK and any(late):
        return BatchDefect.BAD_TIMES
    if codec and [number for _, number in records] != list(range(len(records))):
        return BatchDefect.WRONG_PLACES
    return max(-1, *times)
