"""For handlers that ask several replicas, or the controller, before they answer once.

A `Round` counts open questions and calls back when the last one is answered. `Asking` is a round
whose questions are asked in steps, a limited number at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from typing import Protocol, TypeAlias, TypeVar

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.host import Host, ReplicaInbox, absent_partition
from ottla.raft.types import Micros

MOST_OUT = 100
"""How many commands of one request may be at the controller at a time. Each has about ten objects,
which Python's garbage collector would have to search as long as the slowest command takes."""
ENTRIES_A_UNIT = 20
"""Reading this many entries of a request once costs one unit (`ottla.broker.event_loop.slices`)."""


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
        """The name of the topic."""

    @property
    def partitions(self) -> Collection[EntryOf_co]:
        """The entries."""


Where: TypeAlias = tuple[str, int]
"""The name of a topic and the number of a partition."""
Named: TypeAlias = tuple[dict[Where, Entry], set[Where]]


def _finished() -> None:
    """Replaces the callback of a finished round, so that the round does not keep it alive."""


class Round:
    """Open questions: `finish()` is called once, when the last of them is answered.

    The caller that asks counts as one question, so that a round does not finish while more
    questions are being asked:

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
        """One more question is open."""
        self._open += 1

    def end(self) -> None:
        """One question is answered, or all questions are asked."""
        assert self._open > 0, f"a round ended {1 - self._open} times too often"
        self._open -= 1
        if not self._open:
            finish, self._finish = self._finish, _finished
            finish()


class Asking(Round):
    """A round whose questions are asked in steps, at most `MOST_OUT` at a time.

        asking = Asking(call, finish)
        asking.run(steps)               # which call asking.begin() for each question

    While questions wait to be asked, the connection begins no other request, so that all questions
    of this request come before those of later requests.
    """

    __slots__ = ("_call", "_steps", "_waits")

    def __init__(self, call: Call, finish: Callable[[], None]):
        super().__init__(finish)
        self._call = call
        self._steps: Iterator[int] = iter(())
        self._waits = False

    def run(self, steps: Iterator[int]) -> None:
        """Ask. `steps` may yield after a question, or for an entry without a question."""
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
        """One question is answered, or all are asked. If there is room, ask more."""
        super().end()
        if self._waits and self._open <= MOST_OUT // 2:
            self._waits = False
            self._call.release()
            self._call.run(self._some())


def hosted(host: Host, topic: str, partition: int) -> ReplicaInbox | ErrorCode:
    """This node's replica of a partition, or the error for the client if there is none."""
    replica = host.replica(topic, partition)
    if replica is not None:
        return replica
    image = host.topics().get(topic)
    if image is None or not 0 <= partition < len(image.partitions):
        return absent_partition(host)
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def by_partition(topics: Iterable[Topic[Entry]]) -> Generator[int, None, Named[Entry]]:
    """The entries of a request by partition, and the partitions that are named more than once; in
    steps. If a partition is named twice, the last entry counts, at the position of the first."""
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
    """The time after which a client no longer waits; with a timeout of 0 or less it is now."""
    return host.now() + max(timeout, 0)


def leadership_deadline(host: Host) -> Micros:
    """The time until which a request without a time limit waits for a new leader to know its high
    watermark. A leader that hears no majority for an election timeout resigns, so it is useless to
    wait longer.
    """
    return host.now() + host.config.election_timeout_ms * 1000
