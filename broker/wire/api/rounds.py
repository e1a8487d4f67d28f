"""What handlers share that ask several replicas, or the controller, before they answer once.

A `Round` counts the questions that are out and calls back when the last answer is there. `Asking`
is one whose questions go out in steps, few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from typing import Protocol, TypeAlias, TypeVar

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.host import Host, ReplicaInbox, absent_partition
from ottla.raft.types import Micros

MOST_OUT = 100
"""Commands that one request has at the controller at a time. Thousands would be some ten objects
each for as long as the slowest takes, and the more for Python's collector to look through."""
ENTRIES_A_UNIT = 20
"""Entries of a request that cost a unit of the turn to go through once
(`ottla.broker.event_loop.slices`)."""


class Partition(Protocol):
    """An entry of a request."""

    @property
    def partition_index(self) -> int:
        """The partition it names."""


Entry = TypeVar("Entry", bound=Partition)
EntryOf_co = TypeVar("EntryOf_co", bound=Partition, covariant=True)


class Topic(Protocol[EntryOf_co]):
    """The entries of a request that name partitions of one topic."""

    @property
    def name(self) -> str:
        """The topic's."""

    @property
    def partitions(self) -> Collection[EntryOf_co]:
        """The entries."""


Where: TypeAlias = tuple[str, int]
"""A topic's name and a partition."""
Named: TypeAlias = tuple[dict[Where, Entry], set[Where]]


def _finished() -> None:
    """What is left to do of a round that is over. It may be part of what was called then."""


class Round:
    """Questions that are out: `finish()` is called once, when the last of them has come back.

    The asker itself counts as one, so that a round whose questions are answered at once does not
    finish while more are being asked:

        asked = Round(lambda: call.answer(...))
        for each in request:
            asked.begin()
            ask(each, on_answer)        # which calls asked.end()
        asked.end()
    """

    __slots__ = ("_finish", "_open")

    def __init__(self, finish: Callable[[], None]):
        self._finish = finish
        self._open = 1

    def begin(self) -> None:
        """One more question is out."""
        self._open += 1

    def end(self) -> None:
        """One question, or the asking itself, has come to its end."""
        assert self._open > 0, f"a round ended {1 - self._open} times too often"
        self._open -= 1
        if not self._open:
            finish, self._finish = self._finish, _finished
            finish()


class Asking(Round):
    """A round whose questions go out in steps, `MOST_OUT` of them at a time.

        asking = Asking(call, finish)
        asking.run(steps)               # which call asking.begin() for each question

    While the rest waits for answers, the connection begins nothing else: what this request asks
    comes before what those behind it ask.
    """

    __slots__ = ("_call", "_steps", "_waits")

    def __init__(self, call: Call, finish: Callable[[], None]):
        super().__init__(finish)
        self._call = call
        self._steps: Iterator[int] = iter(())
        self._waits = False

    def run(self, steps: Iterator[int]) -> None:
        """Ask; `steps` may yield only after a question, or where it has none."""
        self._steps = steps
        self._call.run(self._some())

    def _some(self) -> Steps:
        for units in self._steps:
            yield units
            if self._open > MOST_OUT:
                self._waits = True
                self._call.hold()
                return
        self.end()

    def end(self) -> None:
        """One question, or the asking itself, has come to its end; there may be room for more."""
        super().end()
        if self._waits and self._open <= MOST_OUT // 2:
            self._waits = False
            self._call.release()
            self._call.run(self._some())


def hosted(host: Host, topic: str, partition: int) -> ReplicaInbox | ErrorCode:
    """The replica of a partition on this node, or what a client hears that asks in vain."""
    replica = host.replica(topic, partition)
    if replica is not None:
        return replica
    image = host.topics().get(topic)
    if image is None or not 0 <= partition < len(image.partitions):
        return absent_partition(host)
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def by_partition(topics: Iterable[Topic[Entry]]) -> Generator[int, None, Named[Entry]]:
    """The entries of a request under the partitions they name, and which partitions are named more
    than once; in steps. Of what is named twice the last entry counts, in the place of the first."""
    named: dict[Where, Entry] = {}
    twice: set[Where] = set()
    for topic in topics:
        if not topic.partitions:
            yield 1
        for at, entry in enumerate(topic.partitions):
            where = topic.name, entry.partition_index
            if where in named:
                twice.add(where)
            named[where] = entry
            if at % ENTRIES_A_UNIT == 0:
                yield 1
    return named, twice


def deadline_after(host: Host, timeout: Micros) -> Micros:
    """Point in time after which a client no longer waits; a timeout of 0 or less means at once."""
    return host.now() + max(timeout, 0)


def leadership_deadline(host: Host) -> Micros:
    """How long a request that names no limit waits for a new leader to know its high watermark.

    A leader that hears no majority for an election timeout resigns, so waiting longer is in vain.
    """
    return host.now() + host.config.election_timeout_ms * 1000
