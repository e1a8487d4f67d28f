"""`Outcome`: how a controller command ended, and `RecentOutcomes`, which can say it again.

A command may come to the log twice: its asker heard nothing from a leader that died, and asked the
next one. The second is answered what came of the first, and changes nothing. So a topic is not
called *existing* that the same request created, and a topic that was made again meanwhile is not
deleted by a request that was answered before.

The memory is part of the catalog, and of its snapshot: what it answers depends on the log alone.
It goes back `REMEMBERED` commands; who asks again after so many others is taken for somebody new
(as everybody is by Kafka) and may hear that the topic exists that it created itself.
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
    """An outcome that changed nothing, and why."""
    return Outcome(error, {"message": message})


class RecentOutcomes:
    """The outcomes of the last commands in the log whose origin is known, by that origin."""

    def __init__(self) -> None:
        self._decided: dict[Origin, tuple[LogIndex, Outcome]] = {}

    def find(self, origin: Origin | None) -> tuple[LogIndex, Outcome] | None:
        """Where in the log this command was decided, and how; None when it was not, or long ago."""
        return None if origin is None else self._decided.get(origin)

    def add(self, origin: Origin, index: LogIndex, outcome: Outcome) -> None:
        """This command was decided; the oldest is forgotten for it."""
        self._decided[origin] = index, outcome
        if len(self._decided) > REMEMBERED:
            del self._decided[next(iter(self._decided))]

    def state(self) -> list[Unpacked]:
        """All of it, oldest first, as msgpack takes it, for `restored`."""
        return [
            (origin, index, int(outcome.error), outcome.result)
            for origin, (index, outcome) in self._decided.items()
        ]

    @classmethod
    def restored(cls, state: Iterable[Unpacked]) -> RecentOutcomes:
        """What `state` gave."""
        recent = cls()
        for origin, index, error, result in state:
            recent.add(tuple(origin), index, Outcome(ErrorCode(error), result))
        return recent
