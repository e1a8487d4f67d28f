"""Processes that run seeds, and that end when their results are no longer wanted.

They learn that by a pipe: its other end is closed when the work is over, when it is interrupted,
and by the system when the parent is killed. A process that works on several runs checks `over()`
between two of them; one whose parent is gone ends at once. Ctrl-C goes to every process of a
terminal, but only the parent may handle it: a pool whose processes die by themselves reports that
instead of Ctrl-C. A Ctrl-C during the start of a process would meet the interpreter's own handler.
So processes start with the signal blocked, and unblock it after they have set it to be ignored.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from threading import Event, Thread, current_thread, main_thread
from typing import ParamSpec, TypeVar

_over = Event()
_CAN_BLOCK = hasattr(signal, "pthread_sigmask")  # Windows cannot
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_STOPS = (signal.SIGINT, signal.SIGTERM)


class NobodyWaitsError(Exception):
    """The results of a process are no longer wanted."""


class _Pool(ProcessPoolExecutor):
    """Starts a process only in `submit`, when there is work for one more."""

    def submit(
        self, fn: Callable[_Given, _Result], /, *args: _Given.args, **kwargs: _Given.kwargs
    ) -> Future[_Result]:
        with _undisturbed():
            if not _CAN_BLOCK:
                return super().submit(fn, *args, **kwargs)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                return super().submit(fn, *args, **kwargs)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Within the block, signals that end a command are only noted, and handled at its end:
    otherwise a half-started process would be left alone, or print a traceback. Blocking signals is
    not enough: another thread may take one, and its handler runs in the main thread anyway."""
    handlers = {each: signal.getsignal(each) for each in _STOPS}
    if current_thread() is not main_thread() or None in handlers.values():
        yield
        return
    noted: list[int] = []
    for each in _STOPS:
        signal.signal(each, lambda number, _: noted.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for first in noted[:1]:
            signal.raise_signal(first)


@contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """So many fresh processes. They end after the block, within about one run."""
    context = get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    if _CAN_BLOCK:
        resource_tracker.ensure_running()  # unblocks Ctrl-C when it starts: not while we block it
    pool = _Pool(jobs, context, _begin, (theirs,))
    try:
        yield pool
    finally:
        ours.close()
        pool.shutdown(cancel_futures=True)
        theirs.close()


def as_they_end(asked: Iterator[Future[_Result]], ahead: int) -> Iterator[Future[_Result]]:
    """Each future when it is done, even if earlier ones are not; at most `ahead` of them are
    requested and not returned yet. Of those done at the same time, a failed one comes last: it ends
    the work, and the results of the others would be lost."""
    running: list[Future[_Result]] = []
    while True:
        running += islice(asked, ahead - len(running))
        if not running:
            return
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        ended = [each for each in running if each in done]
        for each in sorted(ended, key=lambda future: future.exception() is not None):
            running.remove(each)
            yield each


def go_on() -> None:
    """Call this between two runs. Raises `NobodyWaitsError` in a process whose work is over."""
    if _over.is_set():
        raise NobodyWaitsError


def _begin(theirs: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _CAN_BLOCK:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = parent_process()
    assert parent is not None, "a process of a pool has a parent"
    Thread(target=_watch, args=(theirs, parent.sentinel), daemon=True).start()


def _watch(theirs: Connection, parent: int) -> None:
    if parent not in connection.wait([theirs, parent]):
        _over.set()
        connection.wait([parent])
    os._exit(1)
