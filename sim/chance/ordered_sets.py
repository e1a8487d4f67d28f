"""Sets that iterate in the order of insertion, for code that is not ours.

A set of strings iterates in the order of their hashes, which Python draws anew for each process; on
CPython 3.11 so does a set of tuples with `None`. These classes replace `set` and `frozenset` in the
modules of such a program (`ottla.sim.asyncio_runs.outside`). `isinstance` takes them for the
built-in ones, and the built-in ones for them.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import Any, Self


class _AsBuiltIn(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__bases__[-1])


class _NewSets:
    """The methods that make another set of the same kind."""

    __slots__ = ()

    def union(self: Any, *others: Iterable[Any]) -> Any:
        """As `set`."""
        return type(self)([*self, *(item for other in others for item in other)])

    def difference(self: Any, *others: Iterable[Any]) -> Any:
        """As `set`."""
        return type(self)(_difference(self, others))

    def intersection(self: Any, *others: Iterable[Any]) -> Any:
        """As `set`."""
        return type(self)(_intersection(self, others))

    def symmetric_difference(self: Any, other: Iterable[Any]) -> Any:
        """As `set`."""
        return type(self)(_symmetric_difference(self, other))

    def __or__(self, other: Any) -> Any:
        return self.union(other)

    def __sub__(self, other: Any) -> Any:
        return self.difference(other)

    def __and__(self, other: Any) -> Any:
        return self.intersection(other)

    def __xor__(self, other: Any) -> Any:
        return self.symmetric_difference(other)


class OrderedSet(_NewSets, builtins.set[Any], metaclass=_AsBuiltIn):
    """A `set` in the order of insertion."""

    __slots__ = ("_order",)

    def __init__(self, items: Iterable[Any] = ()):
        super().__init__()
        self._order: dict[Any, None] = {}
        self.update(items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._order)

    def __reduce__(self) -> Any:
        return OrderedSet, (list(self),)

    # ---- changes

    def add(self, item: Any) -> None:
        """As `set`."""
        super().add(item)
        self._order[item] = None

    def discard(self, item: Any) -> None:
        """As `set`."""
        super().discard(item)
        self._order.pop(item, None)

    def remove(self, item: Any) -> None:
        """As `set`."""
        super().remove(item)
        del self._order[item]

    def pop(self) -> Any:
        """Removes the oldest item; `set` may remove any."""
        for item in self:
            self.remove(item)
            return item
        raise KeyError("pop from an empty set")

    def clear(self) -> None:
        """As `set`."""
        super().clear()
        self._order.clear()

    def update(self, *others: Iterable[Any]) -> None:
        """As `set`."""
        for other in others:
            for item in other:
                self.add(item)

    def _keep(self, items: Iterable[Any]) -> None:
        kept = list(items)
        self.clear()
        self.update(kept)

    def difference_update(self, *others: Iterable[Any]) -> None:
        """As `set`."""
        self._keep(self.difference(*others))

    def intersection_update(self, *others: Iterable[Any]) -> None:
        """As `set`."""
        self._keep(self.intersection(*others))

    def symmetric_difference_update(self, other: Iterable[Any]) -> None:
        """As `set`."""
        self._keep(self.symmetric_difference(other))

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __isub__(self, other: Any) -> Any:
        self.difference_update(other)
        return self

    def __iand__(self, other: Any) -> Any:
        self.intersection_update(other)
        return self

    def __ixor__(self, other: Any) -> Any:
        self.symmetric_difference_update(other)
        return self

    def copy(self) -> OrderedSet:
        """As `set`."""
        return OrderedSet(self)


class OrderedFrozenSet(_NewSets, builtins.frozenset[Any], metaclass=_AsBuiltIn):
    """A `frozenset` in the order of insertion."""

    __slots__ = ("_order",)

    _order: tuple[Any, ...]

    def __new__(cls, items: Iterable[Any] = ()) -> Self:
        """As `frozenset`."""
        order = tuple(dict.fromkeys(items))
        made = super().__new__(cls, order)
        made._order = order
        return made

    def __iter__(self) -> Iterator[Any]:
        return iter(self._order)

    def __reduce__(self) -> Any:
        return OrderedFrozenSet, (list(self),)

    def copy(self) -> OrderedFrozenSet:
        """As `frozenset`."""
        return self


def _difference(items: Iterable[Any], others: tuple[Iterable[Any], ...]) -> list[Any]:
    without = builtins.set().union(*others)
    return [item for item in items if item not in without]


def _intersection(items: Iterable[Any], others: tuple[Iterable[Any], ...]) -> list[Any]:
    sets = [builtins.set(other) for other in others]
    return [item for item in items if all(item in each for each in sets)]


def _symmetric_difference(items: Iterable[Any], other: Iterable[Any]) -> list[Any]:
    ours, theirs = list(items), list(dict.fromkeys(other))
    return [*_difference(ours, (theirs,)), *_difference(theirs, (ours,))]
