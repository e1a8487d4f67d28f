"""Modules that requests need, imported when the first of their kind arrives.

Importing one opens a file. A peer that opens connections until no descriptor is left would so cut
off others, at their first request of a kind. So one descriptor is kept for that.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from importlib import import_module
from types import ModuleType

from ottla.broker.event_loop.native import make_lock

_NONE_LEFT = frozenset({errno.EMFILE, errno.ENFILE})


class _Spare:
    """A descriptor that is open for nothing but to be closed in need."""

    users = 0
    """Listeners of this process."""
    held: int | None = None
    lock = make_lock()
    """Clusters of one process may run in several threads."""


def keep_spare() -> None:
    """Hold one, if there is any, until who asked for it says `give_up_spare`."""
    with _Spare.lock:
        _Spare.users += 1
        _hold()


def give_up_spare() -> None:
    """The last of them closes it."""
    with _Spare.lock:
        _Spare.users -= 1
        if not _Spare.users:
            _let_go()


def _hold() -> None:
    if _Spare.held is None:
        with suppress(OSError):
            _Spare.held = os.open(os.devnull, os.O_RDONLY)


def _let_go() -> None:
    if _Spare.held is not None:
        os.close(_Spare.held)
        _Spare.held = None


def load(name: str) -> ModuleType:
    """The module of that name. Raises what importing it raises."""
    try:
        return import_module(name)
    except OSError as error:
        if error.errno not in _NONE_LEFT:
            raise
    with _Spare.lock:
        _let_go()
        try:
            return import_module(name)
        finally:
            _hold()
