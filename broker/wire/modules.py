"""Imports modules when the first request that needs them arrives.

An import opens a file. If a peer opens connections until no descriptor is left, other clients would
fail at the first request that needs an import. So one spare descriptor is kept for imports.
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
    """A descriptor that is kept open to be closed when an import needs one."""

    users = 0
    """How many listeners this process has."""
    held: int | None = None
    lock = make_lock()
    """Needed because clusters of one process may run in several threads."""


def keep_spare() -> None:
    """Keep a spare descriptor, if there is one, until the same caller calls `give_up_spare`."""
    with _Spare.lock:
        _Spare.users += 1
        _hold()


def give_up_spare() -> None:
    """The end of `keep_spare`; the last caller closes the descriptor."""
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
    """Import the module of that name. Raises what the import raises."""
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
