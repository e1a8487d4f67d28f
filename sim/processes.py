"""Processes that run seeds, and that end when nobody waits for them any more.

A pipe says so: its other end is closed when the work is over, when it is interrupted, and by the
system when the parent is killed. A process at work on several runs looks at `over()` between two of
them; one whose parent is gone ends at once. Ctrl-C goes to every process of a terminal: here the
parent alone minds it, for a pool whose processes die on their own tells of that, not of Ctrl-C.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from threading import Event, Thread

_over = Event()


class NobodyWaitsError(Exception):
    """What a process was at is wanted by nobody any more."""


@contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """So many fresh processes. Behind the block they are gone, within a run or so."""
    context = get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, _begin, (theirs,))
    try:
        yield pool
    finally:
        ours.close()
        pool.shutdown(cancel_futures=True)
        theirs.close()


def go_on() -> None:
    """Between two runs. Raises `NobodyWaitsError` in a process whose work is over."""
    if _over.is_set():
        raise NobodyWaitsError


def _begin(theirs: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None, "a process of a pool has a parent"
    Thread(target=_watch, args=(theirs, parent.sentinel), daemon=True).start()


def _watch(theirs: Connection, parent: int) -> None:
    if parent not in connection.wait([theirs, parent]):
        _over.set()
        connection.wait([parent])
    os._exit(1)
