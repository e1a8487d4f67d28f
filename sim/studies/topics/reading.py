"""Reading as asked: which ranges, which rows. What Spark's two readers have in common, without it.

`Stream` is the bounded walk of a streaming query. It works with Spark 4.0 and 4.1, which ask for
the latest offset without saying where the stream is, and with 4.2, which say it: before, the walk
remembers itself where it is, and learns it after a restart from the first ranges it is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from ottla.sim.studies.topics.asked import LATEST, Asked, Offsets, SourceError
from ottla.sim.studies.topics.offsets import (
    Bounds,
    Placed,
    Range,
    advanced,
    between,
    ended,
    not_below,
    placed,
)

if TYPE_CHECKING:
    import pyarrow as pa


class Topics(Protocol):
    """Where topics are read: `WireTopics` or `FolderTopics`. Raises `SourceError`."""

    def bounds(self, topic: str) -> dict[int, Bounds]:
        """What there is of every partition."""

    def read(self, wanted: Range) -> Iterator[Placed]:
        """The batches that overlap a range, in order."""

    def close(self) -> None:
        """Let go of whatever is open."""


def opened(asked: Asked) -> Topics:
    """The topics that are asked for. Raises `SourceError`."""
    if asked.path:
        from ottla.sim.studies.topics.folder import FolderTopics

        return FolderTopics(asked.path, asked.node, strict=asked.strict)
    from ottla.sim.studies.topics.wire import WireTopics

    return WireTopics(asked.bootstrap, timeout=asked.timeout, strict=asked.strict)


def known(asked: Asked) -> dict[str, dict[int, Bounds]]:
    """Bounds of everything that is asked for. Raises `SourceError`."""
    topics = opened(asked)
    try:
        return {topic: topics.bounds(topic) for topic in asked.topics}
    finally:
        topics.close()


def batch_ranges(asked: Asked) -> list[Range]:
    """The ranges of a whole batch query. Raises `SourceError`."""
    now = known(asked)
    return between(placed(asked.starting, now), ended(asked.ending, now), asked.per_partition)


def rows(asked: Asked, wanted: Range) -> Iterator[pa.RecordBatch]:
    """The rows of one range, as Arrow. Raises `SourceError`."""
    from ottla.log.errors import RecordsError
    from ottla.sim.studies.topics.columns import tables

    topics = opened(asked)
    try:
        yield from tables(topics.read(wanted), wanted, asked.rows, headers=asked.headers)
    except RecordsError as error:
        raise SourceError(f"{wanted.topic}-{wanted.partition}: {error}") from None
    finally:
        topics.close()


class Stream:
    """See the module's text."""

    def __init__(self, asked: Asked, clock: Callable[[], float] = time.monotonic) -> None:
        self._asked = asked
        self._clock = clock
        self._reached: Offsets | None = None
        """How far micro-batches have been offered."""
        self._final: Offsets | None = None
        """Where an `availableNow` ends."""
        self._short_since: float | None = None

    def first(self) -> Offsets:
        """Where a stream without a checkpoint begins. Raises `SourceError`."""
        self._reached = placed(self._asked.starting, known(self._asked))
        return self._reached

    def freeze(self) -> None:
        """Nothing that comes from now on is offered. Raises `SourceError`."""
        self._final = placed(LATEST, known(self._asked))

    def next(self, start: Offsets | None) -> Offsets:
        """Where the next micro-batch ends, behind `start` or behind the one before. Raises
        `SourceError`."""
        reached = start or self._reached or self.first()
        end = self._final or placed(LATEST, known(self._asked))
        whole = not_below(end, reached)
        self._watch(short=whole != end, reached=reached, end=end)
        self._reached = advanced(reached, whole, self._asked.per_batch)
        return self._reached

    def ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        """The ranges of one micro-batch."""
        self._reached = end
        return between(start, end, self._asked.per_partition)

    def _watch(self, *, short: bool, reached: Offsets, end: Offsets) -> None:
        """A log that stays shorter than it was has lost records, or is another one."""
        if not short or self._final is not None:
            self._short_since = None
            return
        now = self._clock()
        if self._short_since is None:
            self._short_since = now
        elif now - self._short_since > self._asked.timeout:
            raise SourceError(
                f"logs end at {end}, though they were read to {reached}: records that consumers "
                f"had been shown are gone, or a topic was made anew"
            )
