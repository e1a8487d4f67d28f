"""Shrinking: the same difference with as few steps as possible, and with plain ones.

Large parts go first (delta debugging, Zeller 2002): whatever is about other partitions than the
step that differs, then halves of the steps before it, quarters, ... down to single ones. Then keys
of steps and topics are left out, and numbers are made smaller, as long as the same kind of
difference shows. That begins again until nothing helps any more, or enough has been tried.

Whether a sketch shows the difference is asked of a function, so that nothing here knows a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ottla.compare.case import TOPIC
from ottla.compare.fuzz.sketch import Sketch, Steps

Shows: TypeAlias = Callable[[Sketch], Sketch | None]
"""The sketch up to the step that differs; None if it is no case, or does not show the
difference."""
_PLAIN: dict[str, tuple[Any, ...]] = {
    "records": (1,),
    "producer": (1_000_000_007,),
    "epoch": (0, 1),
    "sequence": (0, 1, 2),
    "offset": (0, 1),
}
"""Plainer values of keys than those that were drawn, the plainest first."""
_EXTRAS = frozenset(
    {
        *("acks", "codec", "connection", "isolation_level", "leader_epoch", "max_bytes"),
        *("partition_max_bytes", "pipelined", "records", "timestamp", "topic", "version"),
    }
)
"""Keys that seldom matter, and may all be left out at once."""


class Shrinker:
    """Makes `best` smaller, which must show the difference. At most `most` sketches are tried, and
    none once `over` says that there is no time left."""

    def __init__(
        self, first: Sketch, shows: Shows, most: int, over: Callable[[], bool] = lambda: False
    ):
        self.best = first
        self.replays = 0
        self._shows = shows
        self._most = most
        self._over = over
        self._failed: set[str] = set()
        """Sketches that were tried, and do not show it."""

    def run(self) -> Sketch:
        """The smallest sketch that was found."""
        before: Sketch | None = None
        while before != self.best and not self._enough:
            before = self.best
            self._drop_steps()
            self._simplify()
            self._drop_topics()
        return self.best

    @property
    def _enough(self) -> bool:
        return self.replays >= self._most or self._over()

    def _try(self, **changes: Any) -> bool:
        sketch = {**self.best, **changes}
        if self._enough or repr(sketch) in self._failed:
            return False
        self.replays += 1
        shown = self._shows(sketch)
        if shown is None:
            self._failed.add(repr(sketch))
        else:
            self.best = shown
        return shown is not None

    def _drop_steps(self) -> None:
        """Leave steps out, but never the last one; first all that are about other partitions."""
        *before, last_step = self.best["steps"]
        here = _places(last_step)
        near = [each for each in before if "name" in each or _places(each) & here]
        if len(near) < len(before):
            self._try(steps=_led([*near, last_step]))
        size = max(1, (len(self.best["steps"]) - 1) // 2)
        while size and not self._enough:
            at = 0
            while at < len(self.best["steps"]) - 1:
                steps: Steps = self.best["steps"]
                last = min(at + size, len(steps) - 1)
                if not self._try(steps=_led(steps[:at] + steps[last:])):
                    at += size
            size //= 2

    def _drop_topics(self) -> None:
        topics = self.best["topics"]
        for name in topics:
            others = {each: topic for each, topic in self.best["topics"].items() if each != name}
            if not self._try(topics=others) and topics[name]:
                self._try(topics={**self.best["topics"], name: {}})
        if self.best["absent"]:
            self._try(absent=[])

    def _simplify(self) -> None:
        """Leave out keys of steps, and make values plainer."""
        number = 0
        while number < len(self.best["steps"]):
            tried: list[Any] = []
            while not self._enough and number < len(self.best["steps"]):
                steps: Steps = self.best["steps"]
                tried.append(steps[number])
                fresh = next((each for each in _plainer(steps[number]) if each not in tried), None)
                if fresh is None:
                    break
                tried.append(fresh)
                self._try(steps=[*steps[:number], fresh, *steps[number + 1 :]])
            number += 1


def _places(step: dict[str, Any]) -> set[tuple[Any, Any]]:
    """The partitions that a step is about, by topic and number."""
    asks = [each for each in step.values() if isinstance(each, dict)]
    entries = [entry for ask in asks for entry in ask.get("to", [ask])]
    return {(each.get("topic", TOPIC), each.get("partition", 0)) for each in entries}


def _led(steps: Steps) -> Steps:
    """Steps of which the first is not written behind another one, because there is none."""
    first, *others = steps
    return [{key: value for key, value in first.items() if key != "pipelined"}, *others]


def _plainer(value: Any, key: str = "") -> Iterator[Any]:
    """Values like this one, with something left out or made plainer: first much of it, then one
    thing alone."""
    if isinstance(value, dict):
        yield {name: inside for name, inside in value.items() if name not in _EXTRAS}
        for name in value:
            yield {each: inside for each, inside in value.items() if each != name}
        for name, inside in value.items():
            yield from ({**value, name: instead} for instead in _plainer(inside, name))
    elif isinstance(value, list):
        for number in range(len(value)):
            yield value[:number] + value[number + 1 :]
        for number, inside in enumerate(value):
            behind = value[number + 1 :]
            yield from ([*value[:number], instead, *behind] for instead in _plainer(inside))
    plain = _PLAIN.get(key, ())
    yield from plain[: plain.index(value)] if value in plain else plain
