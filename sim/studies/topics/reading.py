"""Reads what was asked for: which ranges, which rows. The common part of Spark's two readers.

`Stream` limits the micro-batches of a streaming query. Spark 4.0 and 4.1 ask for the latest offset
without saying where the stream is; 4.2 says it. For the older versions the stream remembers where
it is, and learns it after a restart from the first ranges that it is asked for.

Offsets are a stream's own record of what it has read, and so is the id of each topic. If a topic is
another one, or shorter than it was, the stream cannot go on. The first is an error at once. The
second is an error only if waiting did not help, because the leader that answered may be deposed
without knowing it.

When a stream begins, every partition must have a leader. If one has none later, the stream does not
advance in it, which loses nothing, and the others go on. The offsets name it if that lasts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.sim.studies.topics.asked import EARLIEST, LATEST, Asked, SourceError
from ottla.sim.studies.topics.identity import Ids, Kept, Place, joined, parted, same
from ottla.sim.studies.topics.offsets import (
    Bounds,
    Placed,
    Range,
    advanced,
    between,
    forward,
    not_below,
    placed,
    shorter,
)

if TYPE_CHECKING:
    import pyarrow as pa


SHORT_FOR_S = 10.0
"""How many seconds a log may be shorter than it was, unless `timeout` is less. A leader that is cut
off from its cluster leads for about so long."""
_AGAIN_S = 0.2


class Topics(Protocol):
    """A source of topics: `WireTopics` or `FolderTopics`. Raises `SourceError`."""

    def bounds(self, topic: str) -> dict[int, Bounds]:
        """The bounds of every partition."""

    def led(self, topic: str) -> tuple[dict[int, Bounds], frozenset[int]]:
        """The bounds of every partition that can be asked now, and the partitions that cannot."""

    def topic_id(self, topic: str) -> str | None:
        """What tells a topic from others of the same name; None: not known."""

    def read(self, wanted: Range) -> Iterator[Placed]:
        """The batches that overlap a range, in order."""

    def close(self) -> None:
        """Close all that is open."""


def opened(asked: Asked, met: Iterable[str] = ()) -> Topics:
    """The topics that are asked for; `met`: those that existed before. Raises `SourceError`."""
    if asked.path:
        from ottla.sim.studies.topics.folder import FolderTopics

        return FolderTopics(asked.path, asked.node, strict=asked.strict)
    from ottla.sim.studies.topics.wire import WireTopics

    return WireTopics(asked.bootstrap, timeout=asked.timeout, strict=asked.strict, met=met)


class Present(NamedTuple):
    """The topics at one moment."""

    bounds: dict[str, dict[int, Bounds]]
    ids: Ids
    without: frozenset[Place] = frozenset()
    """Partitions without a leader now, and so without bounds."""


def present(asked: Asked, *, led: bool = False, met: Iterable[str] = ()) -> Present:
    """All that is asked for, as it is now; `led`: only partitions with a leader. If a broker does
    not know a topic that was `met`, this waits. Raises `SourceError`."""
    topics = opened(asked, met)
    without: frozenset[Place] = frozenset()
    bounds = {}
    try:
        for topic in asked.topics:
            if led:
                bounds[topic], left = topics.led(topic)
                without |= {(topic, each) for each in left}
            else:
                bounds[topic] = topics.bounds(topic)
        ids = {topic: topics.topic_id(topic) for topic in asked.topics}
    finally:
        topics.close()
    known = {topic: each for topic, each in ids.items() if each is not None}
    return Present(bounds, known, without)


def present_behind(
    asked: Asked,
    kept: Kept,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Present:
    """As `present`, for topics that were read so far before: waits a little if a log is shorter.
    Raises `SourceError` if it stays so, or if a topic is another one."""
    until = clock() + patience(asked)
    reached, before = parted(kept)
    while True:
        now = present(asked, met=reached)
        same(before, now.ids)
        lost = shorter(now.bounds, reached)
        if lost is None:
            return now
        if clock() > until:
            raise SourceError(lost)
        pause(_AGAIN_S)


def patience(asked: Asked) -> float:
    """For how many seconds a log may be shorter than it was."""
    return min(asked.timeout, SHORT_FOR_S)


def batch_ranges(asked: Asked) -> list[Range]:
    """The ranges of a whole batch query. Raises `SourceError`."""
    now = present(asked)
    start, end = placed(asked.starting, now.bounds), placed(asked.ending, now.bounds)
    forward(start, end, {} if asked.strict else placed(EARLIEST, now.bounds))
    return between(start, end, asked.per_partition, now.ids)


def rows(asked: Asked, wanted: Range) -> Iterator[pa.RecordBatch]:
    """The rows of one range, as Arrow. Raises `SourceError`."""
    from ottla.log.errors import RecordsError
    from ottla.sim.studies.topics.columns import tables

    topics = opened(asked, [wanted.topic])
    try:
        yield from tables(topics.read(wanted), wanted, asked.rows, headers=asked.headers)
    except RecordsError as error:
        raise SourceError(f"{wanted.topic}-{wanted.partition}: {error}") from None
    finally:
        topics.close()


class Stream:
    """See the module's docstring."""

    def __init__(
        self,
        asked: Asked,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._asked = asked
        self._clock = clock
        self._pause = pause
        self._reached: Kept | None = None
        """How far micro-batches have been offered."""
        self._final: Present | None = None
        """Where an `availableNow` query ends."""
        self._short_since: float | None = None
        self._without: dict[Place, float] = {}
        """By partition without a leader, since when."""

    def first(self) -> Kept:
        """Where a stream without a checkpoint begins. Raises `SourceError`."""
        now = present(self._asked)
        self._reached = joined(placed(self._asked.starting, now.bounds), now.ids)
        return self._reached

    def freeze(self) -> None:
        """Offer nothing that comes from now on. Raises `SourceError`."""
        self._final = present(self._asked)

    def next(self, start: Kept | None) -> Kept:
        """Where the next micro-batch ends, after `start` or the previous one. Raises
        `SourceError`."""
        kept = start or self._reached or self.first()
        reached, before = parted(kept)
        now = self._final or present(self._asked, led=True, met=reached)
        ids = same(before, now.ids)
        lost = shorter(now.bounds, reached, now.without)
        if lost and self._final is not None:
            # The query ends if nothing is offered, so no later call could find it.
            present_behind(self._asked, kept, self._clock, self._pause)
        else:
            self._watch(lost)
        whole = not_below(placed(LATEST, now.bounds), reached)
        upto = advanced(reached, whole, self._asked.per_batch)
        self._reached = joined(upto, ids, self._lasting(now.without))
        return self._reached

    def ranges(self, start: Kept, end: Kept) -> list[Range]:
        """The ranges of one micro-batch."""
        self._reached = end
        offsets, ids = parted(end)
        return between(parted(start)[0], offsets, self._asked.per_partition, ids)

    def _lasting(self, without: frozenset[Place]) -> list[Place]:
        """The partitions that have had no leader for longer than an election takes."""
        now = self._clock()
        self._without = {place: self._without.get(place, now) for place in without}
        return [place for place, at in self._without.items() if now - at > patience(self._asked)]

    def _watch(self, lost: str | None) -> None:
        """Raise an error if a log stays shorter than it was: it has lost records, or is another
        one."""
        now = self._clock()
        if lost is None:
            self._short_since = None
        elif self._short_since is None:
            self._short_since = now
        elif now - self._short_since > patience(self._asked):
            raise SourceError(lost)
