"""Runs work in a thread, while the main thread waits for it or for Ctrl-C.

Ctrl-C interrupts the main thread wherever it is. If that is in the middle of a call to Spark's JVM,
its connection is broken from then on: a study ended in five tracebacks. So the main thread never
makes such calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import current_thread, main_thread
from typing import Any, TypeVar

T = TypeVar("T")
_AGAIN_S = 0.5


def run_interruptible(work: Callable[[], T], stop: Callable[[], object]) -> T:
    """The result of `work`. An interruption ends it by `stop`."""
    if current_thread() is not main_thread():
        return work()
    with ThreadPoolExecutor(1) as thread:
        doing = thread.submit(work)
        try:
            wait([doing])
        except BaseException:
            end([doing], stop)
            raise
    return doing.result()


def end(doing: Collection[Future[Any]], stop: Callable[[], object]) -> None:
    """Call `stop` until all of these have ended, again and again, because work between two steps
    has nothing to stop."""
    while not all(each.done() for each in doing):
        stop()
        wait(doing, _AGAIN_S)
