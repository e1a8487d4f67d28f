"""When Python looks for garbage: not while thousands of objects are made that all stay.

Python's collector searches the *young* objects often. It searches all objects of the process when
the objects that became old since the last full collection are a quarter of the others. A full
collection stops the process: some 20 ms if little more than modules is loaded, 100 ms and more with
thousands of replicas, or with a large program around the cluster.

Ottla's objects do not need the collector. They are in no reference cycle when they are done
(`tests/broker/wire/test_garbage.py`), so Python frees them when the last reference goes. So where
Ottla makes many objects at once, they become old without a search, and they do not count towards
the next full collection. `freeze` followed by `unfreeze` does that, and takes almost no time.

All other young objects of the process become old too, and garbage may be among them. The next full
collection finds that garbage. So that a full collection still comes, at most `MOST_PASSED` objects
of others may become old in this way between two of them. A program that embeds a cluster may freeze
objects or turn the collector off. Ottla changes neither.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY_OBJECTS = 2_000
"""From this number of new objects on, it pays to let them become old without a search."""
FROZEN_BY_PYTHON = 1_000
"""Up to this number, frozen objects are taken for the interpreter's own, which may be unfrozen.
CPython 3.12 begins with 375. A program that freezes what it has loaded freezes many thousands."""
SELDOM = 100
"""Collections of generation 1 between two full ones; Python's default is 10. Between two of them
come at least 7,000 new objects."""
MOST_PASSED = 200_000
"""Objects of others that may become old without a search between two full collections. If all of
them were garbage, that would be some 20 MB."""


@contextmanager
def nothing_collected(*, aged: bool = False, least: int = 0) -> Iterator[None]:
    """Turn the collector off while thousands of objects are made that all stay. To search them
    again and again would take as long as making them, and 100 ms at a time.

    `aged`: at the end, all young objects become old without a search. This is not done if fewer
    than `least` objects were made, or if `may_age` says no.
    """
    collecting = gc.isenabled()
    young = gc.get_count()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if aged and gc.get_count()[0] - young[0] >= least and may_age():
                _Heap.passed += young[0] + (len(gc.get_objects(generation=1)) if young[1] else 0)
                gc.freeze()
                gc.unfreeze()
            gc.enable()


class _Heap:
    """What is known about the collector in this process."""

    frozen = False
    """Whether the process has ever frozen objects of its own."""
    passed = 0
    """Objects of others that became old without a search since the last full collection."""
    looks = 0
    """How many full collections there had been when this was last read."""


def may_age() -> bool:
    """Whether young objects may become old without a search: the process has frozen nothing itself,
    and fewer than `MOST_PASSED` objects of others became old in this way.

    To count frozen objects takes time that grows with their number: 100 ms for a million. So once
    some were found, they are not counted again.
    """
    _Heap.frozen = _Heap.frozen or gc.get_freeze_count() > FROZEN_BY_PYTHON
    if _Heap.frozen:
        return False
    if _Heap.passed >= MOST_PASSED:
        looks = gc.get_stats()[-1]["collections"]
        if looks != _Heap.looks:
            _Heap.looks, _Heap.passed = looks, 0
    return _Heap.passed < MOST_PASSED


def collect_seldom() -> None:
    """Turn the collector on, in a process that only runs a cluster. All present objects become old;
    the next full collection comes after 700,000 more."""
    gc.freeze()
    gc.unfreeze()
    gc.set_threshold(*gc.get_threshold()[:2], SELDOM)
    gc.enable()
