"""When Python looks for garbage: not while thousands of objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_collected(*, aged: bool = False) -> Iterator[None]:
    """For the making of thousands of objects that all stay: looking for garbage among them again
    and again would take as long as making them, and 100 ms at a time.

    `aged`: what is young when it ends counts as old, without having been looked at; `freeze` and
    `unfreeze` move it there. Only where `may_age` says so.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if aged:
                gc.freeze()
                gc.unfreeze()
            gc.enable()


class _Heap:
    """What is known of this process."""

    frozen = False
    """It has frozen something, once."""


def may_age() -> bool:
    """Whether this process has frozen nothing that should stay so.

    To ask Python takes as long as there are frozen objects, 100 ms with a million of them. So it is
    asked no more once there were any.
    """
    _Heap.frozen = _Heap.frozen or gc.get_freeze_count() > 0
    return not _Heap.frozen
