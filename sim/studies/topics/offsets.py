"""From offsets to ranges: what a batch, or a micro-batch, reads of which partition. Pure.

**Theory.** A partition's *bounds* are its log start and its high watermark. Ranges are half open:
`start` is read, `end` is not. A micro-batch of bounded size is dealt out as water is poured: every
partition gets the same number of records, those that have fewer leave theirs to the others. So no
partition waits for another one to be read to its end.

The offsets of a stream name every partition it has met. One that is missing at the start came into
being later, and is read from its first record on.
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
    """What there is of one partition."""

    start: Offset
    """The log start offset."""
    end: Offset
    """The high watermark: behind the last record a consumer may see."""


class Range(NamedTuple):
    """What one task reads."""

    topic: str
    partition: int
    start: Offset
    end: Offset
    """Behind the last record."""
    topic_id: str | None = None
    """Which topic of that name, where it is known."""


class Placed(NamedTuple):
    """A batch, and from which of its offsets on it is read: what is below was deleted, or read."""

    at: Offset
    batch: RecordBatch


Known: TypeAlias = Mapping[str, Mapping[int, Bounds]]
"""Topic → partition → its bounds now."""


def placed(place: Place, known: Known) -> Offsets:
    """The offsets that a user's words mean now. JSON names every partition, as for Spark's own
    source, and no offset behind a log's end. Raises `SourceError`."""
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
    """Whoever asks for an end before his start asked for something else. Where all he asks for lies
    below `gone`, which was deleted and is to be passed over, nothing is left to read. Raises
    `SourceError`."""
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
    """The ranges from `start` to `end`, none of more than `per_task` offsets; `ids` says of which
    topics."""
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

    At least one record of each partition that has any: it always goes on.
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
    """Deal `most` out; who has least comes first, and what he leaves goes to the others."""
    remaining = most
    by_size = sorted(left.items(), key=lambda each: (each[1], each[0]))
    for done, (place, size) in enumerate(by_size):
        share = min(size, max(1, remaining // (len(by_size) - done)))
        remaining -= share
        yield place, share


def not_below(end: Offsets, reached: Offsets) -> Offsets:
    """`end`, but nowhere before what was reached."""
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
    """What is wrong where a log ends before what was read of it; None where none does. Of those
    `without` leader nothing is known."""
    for topic, found in known.items():
        for partition, offset in reached.get(topic, {}).items():
            if (topic, int(partition)) in without:
                continue
            bounds = found.get(int(partition))
            if bounds is None or bounds.end < offset:
                now = "is not there" if bounds is None else f"ends at {bounds.end}"
                return (
                    f"{topic}-{partition} {now}, though it was read to {offset}: records that "
                    f"consumers had been shown are gone, or the topic was made anew"
                )
    return None
