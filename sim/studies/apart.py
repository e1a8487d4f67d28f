"""What may be interrupted: done by a thread, while the main one waits for it or for Ctrl-C.

Ctrl-C comes to the main thread, wherever it is. One that is in the middle of a call to Spark's JVM
has a connection that is out of step from then on: a study ended in five tracebacks. So no main
thread is ever there.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import current_thread, main_thread
from typing import TypeVar

T = TypeVar("T")
_AGAIN_S = 0.5


def apart(work: Callable[[], T], stop: Callable[[], object]) -> T:
    """What `work` gives. When that is interrupted, `stop` is called until it has ended: work may
    be between two steps, with nothing to stop."""
    if current_thread() is not main_thread():
        return work()
    with ThreadPoolExecutor(1) as thread:
        doing = thread.submit(work)
        try:
            wait([doing])
        except BaseException:
            while not doing.done():
                stop()
                wait([doing], _AGAIN_S)
            raise
    return doing.result()
