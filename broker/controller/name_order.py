"""`NameOrder`: commands about one topic name are decided one after the other.

A command is judged by the catalog, which knows of another only once that was applied. So who asks
about a name of which a decision is still on its way through the log waits until it is applied, and
hears what Apache Kafka would say, whose controller decides one after the other: of a topic that was
asked for a moment ago that it exists (36), and not that the second request has a bad factor (38) or
a bad config (40). Commands about other names pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class NameOrder:
    """Commands are known by their numbers of arrival, names by any key."""

    def __init__(self) -> None:
        self._on_the_way: dict[int, str] = {}
        """The name of each command that is queued for the log, or lies in it, not yet applied."""
        self._waiting: dict[str, deque[int]] = {}
        """Who waits behind such a command, by its name; also where nobody does."""

    def waits(self, number: int, name: str) -> bool:
        """Whether a decision about this name is on its way; this command then waits behind it."""
        behind = self._waiting.get(name)
        if behind is not None:
            behind.append(number)
        return behind is not None

    def begin(self, number: int, name: str) -> None:
        """This command is on its way, and no other about its name is."""
        assert name not in self._waiting, f"two decisions about {name!r} on their way at once"
        self._on_the_way[number] = name
        self._waiting[name] = deque()

    def end(self, number: int) -> Iterable[int]:
        """This command is applied, or never will be: who waited behind it, in order."""
        name = self._on_the_way.pop(number, None)
        return () if name is None else self._waiting.pop(name)

    def clear(self) -> None:
        """Nothing is on its way any more."""
        self._on_the_way.clear()
        self._waiting.clear()
