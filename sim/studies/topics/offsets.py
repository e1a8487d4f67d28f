"""From offsets to ranges: what a batch, or a micro-batch, reads of which partition. Pure.

**Theory.** A partition's *bounds* are its log start and its high watermark. Ranges are half open:
`start` is read, `end` is not. A micro-batch of limited size gives every partition the same number
of records; partitions with fewer leave the rest to the others. So no partition waits until another
one is read to its end.

The offsets of a stream name every partition that it has met. A partition that is missing in the
start offsets was created later, and is read from its first record on.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ottla.log.types import Offset, RecordBatch
from ottla.sim.studies.topics.asked import (
    EARLIEST,
    FROM_EARLIEST,
    FROM_LATEST,
    LATEST,
    Offsets,
    Place,
    SourceError,
)


class Bounds(NamedTuple):
    """The range of offsets of one partition."""

    start: Offset
    """The log start offset."""
    end: Offset
    """The high watermark: after the last record that a consumer may see."""


class Range(NamedTuple):
    """What one task reads."""

    topic: str
    partition: int
    start: Offset
    end: Offset
    """After the last record."""
    topic_id: str | None = None
    """The id of the topic; None: not known."""


class Placed(NamedTuple):
    """A batch, and the first of its offsets that is read: those below were deleted, or read
    before."""

    at: Offset
    batch: RecordBatch


Known: TypeAlias = Mapping[str, Mapping[int, Bounds]]
"""Topic → partition → its bounds now."""


def placed(place: Place, known: Known) -> Offsets:
    """The offsets that the user's options mean now. JSON names every partition, as in Spark's own
    source, and no offset after a log's end. Raises `SourceError`."""
    if place == EARLIEST:
        return {t: {str(p): b.start for p, b in found.items()} for t, found in known.items()}
    if place == LATEST:
        return {t: {str(p): b.end for p, b in found.items()} for t, found in known.items()}
    offsets: Offsets = {}
    for topic, found in known.items():
        given = place.get(topic, {})
        _check_all(topic, given, found)
        offsets[topic] = {
            str(partition): _meant(f"{topic}-{partition}", given[str(partition)], bounds)
            for partition, bounds in found.items()
        }
    return offsets


def _check_all(topic: str, given: Mapping[str, Offset], found: Mapping[int, Bounds]) -> None:
    there = set(map(str, found))
    for partition in sorted(given.keys() - there):
        raise SourceError(f"there is no partition {partition} of topic {topic}")
    left_out = sorted(there - given.keys(), key=int)
    if left_out:
        one = f"partition {left_out[0]}"
        many = f"partitions {', '.join(left_out)}"
        raise SourceError(
            f"offsets leave out {one if len(left_out) == 1 else many} of topic {topic}: name "
            f"every partition, with {FROM_EARLIEST} for its start or {FROM_LATEST} for its end"
        )


def _meant(place: str, offset: Offset, bounds: Bounds) -> Offset:
    if offset > bounds.end:
        raise SourceError(
            f"{place}: offset {offset} is out of range, the log goes from {bounds.start} to "
            f"{bounds.end}"
        )
    return {FROM_EARLIEST: bounds.start, FROM_LATEST: bounds.end}.get(offset, offset)


def forward(start: Offsets, end: Offsets, gone: Offsets) -> None:
    """Raises `SourceError` if an end is before its start. If the whole range is below `gone`, which
    was deleted and is to be skipped, nothing is left to read."""
    for topic, partitions in end.items():
        for partition, last in partitions.items():
            first = start[topic][partition]
            if first > max(last, gone.get(topic, {}).get(partition, 0)):
                raise SourceError(
                    f"{topic}-{partition}: startingOffsets say {first} and endingOffsets say "
                    f"{last}, which comes before it"
                )


def between(
    start: Offsets, end: Offsets, per_task: int, ids: Mapping[str, str] | None = None
) -> list[Range]:
    """The ranges from `start` to `end`, each of at most `per_task` offsets; `ids`: the topics'
    ids."""
    ranges: list[Range] = []
    for topic, partitions in end.items():
        for partition, last in partitions.items():
            first = start.get(topic, {}).get(partition, 0)
            ranges += [
                Range(topic, int(partition), at, min(at + per_task, last), (ids or {}).get(topic))
                for at in range(first, last, per_task)
            ]
    return ranges


def advanced(start: Offsets, end: Offsets, most: int) -> Offsets:
    """How far a micro-batch of at most `most` records goes from `start` towards `end`.

    It has at least one record of each partition that has any, so it always advances.
    """
    left = {
        (topic, partition): max(0, last - start.get(topic, {}).get(partition, 0))
        for topic, partitions in end.items()
        for partition, last in partitions.items()
    }
    share = dict(_poured(left, most))
    return {
        topic: {
            partition: start.get(topic, {}).get(partition, 0) + share[topic, partition]
            for partition in partitions
        }
        for topic, partitions in end.items()
    }


def _poured(
    left: Mapping[tuple[str, str], int], most: int
) -> Iterator[tuple[tuple[str, str], int]]:
    """Distribute `most`: partitions with least come first, and what they leave goes to the
    others."""
    remaining = most
    by_size = sorted(left.items(), key=lambda each: (each[1], each[0]))
    for done, (place, size) in enumerate(by_size):
        share = min(size, max(1, remaining // (len(by_size) - done)))
        remaining -= share
        yield place, share


def not_below(end: Offsets, reached: Offsets) -> Offsets:
    """`end`, but never before `reached`."""
    return {
        topic: {
            **reached.get(topic, {}),
            **{
                partition: max(offset, reached.get(topic, {}).get(partition, 0))
                for partition, offset in partitions.items()
            },
        }
        for topic, partitions in end.items()
    }


def shorter(known: Known, reached: Offsets, without: Container[tuple[str, int]] = ()) -> str | None:
    """What is wrong if a log ends before what was read of it; None: nothing. Partitions `without` a
    leader are not checked."""
    for topic, found in known.items():
        for partition, offset in reached.get(topic, {}).items():
            if (topic, int(partition)) in without:
                continue
            bounds = found.get(int(partition))
            if bounds is None or bounds.end < offset:
                now = "is not there" if bounds is None else f"ends at {bounds.end}"
                return (
                    f"{topic}-{partition} {now}, though it was read to {offset}: records that "
                    f"consumers had been shown are gone, or the topic was created again"
                )
    return None
