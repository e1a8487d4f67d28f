"""Reading as asked: which ranges, which rows. What Spark's two readers have in common, without it.

`Stream` is the bounded walk of a streaming query. It works with Spark 4.0 and 4.1, which ask for
the latest offset without saying where the stream is, and with 4.2, which say it: before, the walk
remembers itself where it is, and learns it after a restart from the first ranges it is asked for.

Offsets are a stream's own account of what it has read, and so is the id of each topic: what is
another topic, or is shorter than it was, is no continuation. The first is an error at once. The
second is one when waiting did not help: the leader that was asked may be one that is none any more
and does not know it yet.

Where a stream begins every partition must have a leader. One that has none later is left where it
is, as that loses nothing, and the others go on; the offsets name it once that has lasted.
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
"""Seconds for which a log may be shorter than it was, at most; a smaller `timeout` is less. A
leader that is cut off from its cluster is one for about so long."""
_AGAIN_S = 0.2


class Topics(Protocol):
    """Where topics are read: `WireTopics` or `FolderTopics`. Raises `SourceError`."""

    def bounds(self, topic: str) -> dict[int, Bounds]:
        """What there is of every partition."""

    def led(self, topic: str) -> tuple[dict[int, Bounds], frozenset[int]]:
        """The same of every partition that can be asked now, and those that cannot."""

    def topic_id(self, topic: str) -> str | None:
        """What tells a topic from others of its name; None where nobody says."""

    def read(self, wanted: Range) -> Iterator[Placed]:
        """The batches that overlap a range, in order."""

    def close(self) -> None:
        """Let go of whatever is open."""


def opened(asked: Asked, met: Iterable[str] = ()) -> Topics:
    """The topics that are asked for, and which of them were `met` before. Raises `SourceError`."""
    if asked.path:
        from ottla.sim.studies.topics.folder import FolderTopics

        return FolderTopics(asked.path, asked.node, strict=asked.strict)
    from ottla.sim.studies.topics.wire import WireTopics

    return WireTopics(asked.bootstrap, timeout=asked.timeout, strict=asked.strict, met=met)


class Present(NamedTuple):
    """What topics are at one moment."""

    bounds: dict[str, dict[int, Bounds]]
    ids: Ids
    without: frozenset[Place] = frozenset()
    """Partitions that have no leader now, and no bounds."""


def present(asked: Asked, *, led: bool = False, met: Iterable[str] = ()) -> Present:
    """Everything that is asked for, as it is now, or what is `led` of it. A topic that was `met` is
    waited for where a broker does not know it. Raises `SourceError`."""
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
    """As `present`, of topics that were read so far before: waits a little where a log is shorter.
    Raises `SourceError` when it stays so, or when a topic is another one."""
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
        """Where an `availableNow` ends."""
        self._short_since: float | None = None
        self._without: dict[Place, float] = {}
        """Partitions that have no leader, and since when."""

    def first(self) -> Kept:
        """Where a stream without a checkpoint begins. Raises `SourceError`."""
        now = present(self._asked)
        self._reached = joined(placed(self._asked.starting, now.bounds), now.ids)
        return self._reached

    def freeze(self) -> None:
        """Nothing that comes from now on is offered. Raises `SourceError`."""
        self._final = present(self._asked)

    def next(self, start: Kept | None) -> Kept:
        """Where the next micro-batch ends, behind `start` or behind the one before. Raises
        `SourceError`."""
        kept = start or self._reached or self.first()
        reached, before = parted(kept)
        now = self._final or present(self._asked, led=True, met=reached)
        ids = same(before, now.ids)
        lost = shorter(now.bounds, reached, now.without)
        if lost and self._final is not None:
            # The query ends when nothing is offered, so there is no later call to find it in.
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
        """Those that have had no leader for longer than it takes to elect one."""
        now = self._clock()
        self._without = {place: self._without.get(place, now) for place in without}
        return [place for place, at in self._without.items() if now - at > patience(self._asked)]

    def _watch(self, lost: str | None) -> None:
        """A log that stays shorter than it was has lost records, or is another one."""
        now = self._clock()
        if lost is None:
            self._short_since = None
        elif self._short_since is None:
            self._short_since = now
        elif now - self._short_since > patience(self._asked):
            raise SourceError(lost)
