"""Draws from one stream of a seed, in the words that the tables of the generator need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ottla.sim.chance.choices import Stream

Item = TypeVar("Item")


class Dice:
    """See the module's docstring."""

    def __init__(self, stream: Stream):
        self._stream = stream

    def one_in(self, many: int) -> bool:
        """Whether something happens that happens once in so many times."""
        return self._stream.below(many) == many - 1

    def between(self, low: int, high: int) -> int:
        """A number, both ends included."""
        return self._stream.between(low, high)

    def pick(self, items: Sequence[Item]) -> Item:
        """One of them."""
        return self._stream.pick(items)

    def weighed(self, table: Sequence[tuple[int, Item]]) -> Item:
        """One of them, each as often as its weight says."""
        place = self._stream.below(sum(weight for weight, _ in table))
        for weight, item in table:
            place -= weight
            if place < 0:
                return item
        raise AssertionError("the weights add up")
