"""`Outcome`: how a controller command ended; `RecentOutcomes`: the outcomes of the last commands.

A command may come to the log twice, if the first leader died before it answered and the node asked
the next one. The second command changes nothing and gets the outcome of the first. So a client is
not told that a topic exists which its own request has created, and a topic that was created again
is not deleted by a repeated request.

Recent outcomes are part of the catalog and of its snapshot, so they depend only on the log. The
last `REMEMBERED` outcomes are kept. A command that is repeated later counts as a new one (as always
in Kafka), and may be told that the topic exists which it has created itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import Origin
from ottla.log.types import Unpacked
from ottla.raft.types import LogIndex

REMEMBERED = 1000


@dataclass(slots=True)
class Outcome:
    """How a command ended: `error`, and the fields of its answer (a refusal has a `message`)."""

    error: ErrorCode = ErrorCode.NONE
    result: dict[str, Unpacked] = field(default_factory=dict)


def refused(error: ErrorCode, message: str) -> Outcome:
    """The outcome of a refused command."""
    return Outcome(error, {"message": message})


class RecentOutcomes:
    """The outcomes of the last commands in the log whose origin is known, by that origin."""

    def __init__(self) -> None:
        self._decided: dict[Origin, tuple[LogIndex, Outcome]] = {}

    def find(self, origin: Origin | None) -> tuple[LogIndex, Outcome] | None:
        """The log index and the outcome of this command; None if it was not decided, or long
        ago."""
        return None if origin is None else self._decided.get(origin)

    def add(self, origin: Origin, index: LogIndex, outcome: Outcome) -> None:
        """Add the outcome of a command; the oldest one is dropped if there are too many."""
        self._decided[origin] = index, outcome
        if len(self._decided) > REMEMBERED:
            del self._decided[next(iter(self._decided))]

    def state(self) -> list[Unpacked]:
        """All outcomes, oldest first, as values for msgpack and `restored`."""
        return [
            (origin, index, int(outcome.error), outcome.result)
            for origin, (index, outcome) in self._decided.items()
        ]

    @classmethod
    def restored(cls, state: Iterable[Unpacked]) -> RecentOutcomes:
        """The object whose `state` this is."""
        recent = cls()
        for origin, index, error, result in state:
            recent.add(tuple(origin), index, Outcome(ErrorCode(error), result))
        return recent
