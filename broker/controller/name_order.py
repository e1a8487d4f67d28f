"""`NameOrder`: commands about one topic name are decided one after the other.

A command is judged by the catalog, which has another command's effect only once that is applied. So
if a command about the same name is not applied yet, the new one waits for it. Then the answers are
as in Apache Kafka, whose controller decides one command after the other: a second creation is told
that the topic exists (36), not that its factor (38) or its config (40) is bad. Commands about other
names do not wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class NameOrder:
    """Commands are identified by their numbers of arrival, names by their collision keys."""

    def __init__(self) -> None:
        self._on_the_way: dict[int, str] = {}
        """The name of each command that is queued for the log or in it, and not yet applied."""
        self._waiting: dict[str, deque[int]] = {}
        """The commands that wait for such a command, by its name; the deque may be empty."""

    def waits(self, number: int, name: str) -> bool:
        """Whether a command about this name is not applied yet. If so, this one waits for it."""
        behind = self._waiting.get(name)
        if behind is not None:
            behind.append(number)
        return behind is not None

    def begin(self, number: int, name: str) -> None:
        """This command goes into the log; asserts that no other about its name is on the way."""
        assert name not in self._waiting, f"two decisions about {name!r} on their way at once"
        self._on_the_way[number] = name
        self._waiting[name] = deque()

    def end(self, number: int) -> Iterable[int]:
        """This command is applied, or never will be. Returns the commands that waited for it, in
        order."""
        name = self._on_the_way.pop(number, None)
        return () if name is None else self._waiting.pop(name)

    def clear(self) -> None:
        """Drop everything."""
        self._on_the_way.clear()
        self._waiting.clear()
