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
"""So many would be looked through a few times while they are needed."""
FROZEN_BY_PYTHON = 1_000
"""CPython 3.12 begins with 375 frozen objects; a program that freezes what it has loaded freezes
many thousands. Those of the interpreter may be thawed."""
SELDOM = 100
"""Looks through what is no longer quite young between two full looks; Python's own number is 10.
One comes after 7,000 objects more at the earliest."""
MOST_PASSED = 200_000
"""Objects of others that may become old unseen between two full looks: some 20 MB, were they all
garbage."""


@contextmanager
def nothing_collected(*, aged: bool = False, least: int = 0) -> Iterator[None]:
    """For the making of thousands of objects that all stay: looking for garbage among them again
    and again would take as long as making them, and 100 ms at a time.

    `aged`: what is young when it ends counts as old, without having been looked at; but not where
    fewer than `least` objects were made, nor where `may_age` says no.
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
    """What is known of this process."""

    frozen = False
    """It has frozen something, once."""
    passed = 0
    """Objects of others that became old unseen since the last full look."""
    looks = 0
    """Full looks when that was last asked."""


def may_age() -> bool:
    """Whether this process has frozen nothing that should stay so, and not too much of what others
    made has become old unseen.

    To ask Python for what is frozen takes as long as there is such, 100 ms with a million objects.
    So it is asked no more once there was any.
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
    """Begin to collect, in a process that does nothing but run a cluster: what there is by now
    counts as old, and a full look comes when there are 700,000 objects more."""
    gc.freeze()
    gc.unfreeze()
    gc.set_threshold(*gc.get_threshold()[:2], SELDOM)
    gc.enable()
