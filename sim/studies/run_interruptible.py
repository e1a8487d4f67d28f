"""What may be interrupted: done by a thread, while the main one waits for it or for Ctrl-C.

Ctrl-C comes to the main thread, wherever it is. One that is in the middle of a call to Spark's JVM
has a connection that is out of step from then on: a study ended in five tracebacks. So no main
thread is ever there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import current_thread, main_thread
from typing import Any, TypeVar

T = TypeVar("T")
_AGAIN_S = 0.5


def run_interruptible(work: Callable[[], T], stop: Callable[[], object]) -> T:
    """What `work` gives. When that is interrupted, it is ended by `stop`."""
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
    """Call `stop` until all of these have ended: work may be between two steps, with nothing to
    stop."""
    while not all(each.done() for each in doing):
        stop()
        wait(doing, _AGAIN_S)
