"""Choices: everything in a run that could have gone otherwise, by purpose, on a tape.

All randomness of a run comes from here. Each purpose (the network, one disk, the nemesis...) has a
`Stream` of its own, so that one choice more in one stream shifts nothing in another. Zero always
means *nothing special*: no fault, the shortest delay, the plainest request. Choices that are not
zero are kept on the `Tape`, by stream and place.

| source | where values come from |
|---|---|
| `Drawn(seed)` | a generator per stream, seeded by seed and name |
| `Replayed(tape)` | the tape; zero where it has no value |
| `Forked(tape, seed, past)` | the tape while `past()`, then drawn: what else could have happened? |

So a failure is a seed, or a tape. To make a failure smaller, take choices off its tape
(`shrink.py`): the rest of the run stays as plain as it can be.

Only `random()` of the generator is used: only its sequence is promised to stay over versions of
Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import TypeAlias, TypeVar

Item = TypeVar("Item")
Taken: TypeAlias = dict[int, int]
"""Choices of one stream that were not zero, by place."""

MILLION = 1_000_000


@dataclass(slots=True)
class Tape:
    """Every choice of a run that was not zero: by stream, by place in that stream."""

    taken: dict[str, Taken] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many choices were not zero."""
        return sum(len(each) for each in self.taken.values())


class Stream(ABC):
    """The choices of one purpose, in order."""

    __slots__ = ("_place", "_taken")

    def __init__(self, taken: Taken):
        self._place = 0
        self._taken = taken

    @abstractmethod
    def _choose(self, options: int, place: int) -> int:
        """The value at that place, from 0 to `options` - 1."""

    def below(self, options: int) -> int:
        """One of `options` possibilities, from 0; 0 is the plain one."""
        place = self._place
        self._place = place + 1
        value = self._choose(options, place)
        if value:
            self._taken[place] = value
        return value

    def chance(self, per_million: int) -> bool:
        """Whether something happens that happens `per_million` times in a million. At a rate of 0
        no choice is made."""
        if per_million <= 0:
            return False
        place = self._place
        self._place = place + 1
        if self._choose(MILLION, place) < MILLION - per_million:
            return False
        # Any value that means yes is right; the largest one means yes at every rate on replay.
        self._taken[place] = MILLION - 1
        return True

    def fate(self, rates: Sequence[int]) -> int:
        """Which of several things happens, at most one: its place in `rates`, from 1, or 0 for
        none. `rates` are per million. If all are 0, no choice is made. If they exceed a million,
        the first ones keep their rates, and the others share what is left."""
        above = MILLION - sum(rates)
        if above >= MILLION:
            return 0
        if above < 0:
            rates, above = _within_a_million(rates), 0
        place = self._place
        self._place = place + 1
        value = self._choose(MILLION, place)
        number = 0
        if value >= above:
            self._taken[place] = value
            while value >= above:
                above += rates[number]
                number += 1
        return number

    def between(self, low: int, high: int) -> int:
        """A number from `low` to `high`, both included; `low` is the plain one."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[Item]) -> Item:
        """One of them; the first is the plain one."""
        return items[self.below(len(items))]

    def randrange(self, stop: int, /) -> int:
        """`below`, under the name that election jitter asks for (`JitterSource`)."""
        return self.below(stop)


def _within_a_million(rates: Sequence[int]) -> Sequence[int]:
    left, fitted = MILLION, list[int]()
    for rate in rates:
        fitted.append(min(rate, left))
        left -= fitted[-1]
    return fitted


class DrawnStream(Stream):
    """Values from a generator."""

    __slots__ = ("_random",)

    def __init__(self, random: Callable[[], float], taken: Taken):
        super().__init__(taken)
        self._random = random

    def below(self, options: int) -> int:
        """As `Stream.below`, but without calling `_choose`, because a run calls it thousands of
        times."""
        place = self._place
        self._place = place + 1
        value = int(self._random() * options)
        if value:
            self._taken[place] = value
        return value

    def _choose(self, options: int, place: int) -> int:
        return int(self._random() * options)


class ReplayedStream(Stream):
    """Values from a tape."""

    __slots__ = ("_taped",)

    def __init__(self, taped: Taken, taken: Taken):
        super().__init__(taken)
        self._taped = taped

    def _choose(self, options: int, place: int) -> int:
        # A tape that was cut may have a value here that was for another question: stay within
        # bounds.
        return min(self._taped.get(place, 0), options - 1)


class ForkedStream(Stream):
    """Values from a tape while `past()` is true, then from a generator."""

    __slots__ = ("_drawn", "_past", "_replayed")

    def __init__(
        self, replayed: ReplayedStream, drawn: DrawnStream, past: Callable[[], bool], taken: Taken
    ):
        super().__init__(taken)
        self._replayed = replayed
        self._drawn = drawn
        self._past = past

    def _choose(self, options: int, place: int) -> int:
        source = self._replayed if self._past() else self._drawn
        return source._choose(options, place)  # noqa: SLF001 - a stream made of streams


class Choices(ABC):
    """A source of streams."""

    def __init__(self) -> None:
        self.tape = Tape()
        """The choices so far."""
        self._streams: dict[str, Stream] = {}

    def stream(self, name: str) -> Stream:
        """The stream of a purpose; the same name gives the same stream."""
        stream = self._streams.get(name)
        if stream is None:
            taken = self.tape.taken.setdefault(name, {})
            stream = self._streams[name] = self._make(name, taken)
        return stream

    def forget(self, name: str) -> None:
        """The stream is not used any more, and no replay needs its choices."""
        self._streams.pop(name, None)
        self.tape.taken.pop(name, None)

    @abstractmethod
    def _make(self, name: str, taken: Taken) -> Stream:
        """A new stream that keeps its choices in `taken`."""


class Drawn(Choices):
    """All choices from one seed."""

    def __init__(self, seed: int):
        super().__init__()
        self._seed = seed

    def _make(self, name: str, taken: Taken) -> Stream:
        return DrawnStream(generator(self._seed, name), taken)


class Replayed(Choices):
    """All choices from a tape."""

    def __init__(self, tape: Tape):
        super().__init__()
        self._source = tape.taken

    def _make(self, name: str, taken: Taken) -> Stream:
        return ReplayedStream(self._source.get(name, {}), taken)


class Forked(Choices):
    """Choices from a tape until `past()` is false, from a seed afterwards."""

    def __init__(self, tape: Tape, seed: int, past: Callable[[], bool]):
        super().__init__()
        self._source = tape.taken
        self._seed = seed
        self._past = past

    def _make(self, name: str, taken: Taken) -> Stream:
        replayed = ReplayedStream(self._source.get(name, {}), {})
        drawn = DrawnStream(generator(self._seed, name), {})
        return ForkedStream(replayed, drawn, self._past, taken)


def generator(seed: int, name: str) -> Callable[[], float]:
    """Random numbers in [0, 1) that depend only on seed and name."""
    told = blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
    return Random(int.from_bytes(told, "big")).random
