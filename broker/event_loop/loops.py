"""Event loops that clusters run on: the fastest that is installed, or the caller's own.

A cluster's listeners and timers live on its loop. Two things follow for a loop of the caller:

* asyncio's own loops measure time by `time.monotonic`. Tests freeze that function, and then no
  timer rings. While a cluster runs on such a loop, the loop uses the machine's clock (`Lease`).
  Loops with a clock of their own (uvloop's, simulated ones) stay as they are.
* A forked child shares the loop's epoll set with its parent: see `ottla.log.forking`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 - uvloop's import cannot once the main thread ended
import os
import select
import types
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from ottla.broker.event_loop.descriptors import OF_A_LOOP, check_descriptors
from ottla.broker.event_loop.native import monotonic_seconds
from ottla.log.forking import disown_loops_in_children

_leases: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()
"""For each loop, how many clusters run on it."""


_STANDARD = 3
"""The standard streams have the descriptors below this one."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A new event loop: uvloop's if uvloop is installed, else asyncio's own. Raises `OSError` with
    advice if the process may not open what a loop needs: uvloop would end the process.

    If a daemon or a test runner has closed a standard stream, the next file that is opened gets its
    descriptor number. uvloop ends the whole process when it closes such a descriptor. asyncio does
    not.
    """
    check_descriptors(OF_A_LOOP)
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return asyncio.new_event_loop() if _lowest_free() < _STANDARD else uvloop.new_event_loop()


def _lowest_free() -> int:
    """The number that the next descriptor will get."""
    found = os.open(os.devnull, os.O_RDONLY)
    os.close(found)
    return found


class Lease:
    """A cluster's use of a loop, until `end`."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop: asyncio.AbstractEventLoop | None = loop
        if getattr(loop, "time", None) == types.MethodType(asyncio.BaseEventLoop.time, loop):
            vars(loop)["time"] = monotonic_seconds
            _leases[loop] = 0
        if loop in _leases:
            _leases[loop] += 1
        disown_loops_in_children(self)

    @property
    def loop_closed(self) -> bool:
        """Whether somebody closed the loop while it was in use."""
        return self._loop is not None and self._loop.is_closed()

    def end(self) -> None:
        """The cluster no longer needs the loop. The last lease restores the loop's own clock."""
        loop, self._loop = self._loop, None
        if loop is None or loop not in _leases:
            return
        _leases[loop] -= 1
        if not _leases[loop]:
            del _leases[loop], vars(loop)["time"]

    def pollers(self) -> Iterable[int]:
        """See `ottla.log.forking`."""
        if self._loop is None or not hasattr(select, "epoll"):
            return
        # uvloop's loop names its descriptor, asyncio's keeps a selector; others may have neither.
        backend = getattr(self._loop, "_get_backend_id", None)
        if backend is not None:
            yield backend()
        selector = getattr(self._loop, "_selector", None)
        if selector is not None and hasattr(selector, "fileno"):
            yield selector.fileno()
