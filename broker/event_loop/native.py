"""The interpreter's own clock, locks and threads, even if a test program has patched them.

Tests freeze `time.monotonic` (freezegun, monkeypatch). gevent and eventlet turn `threading` into
green threads. A cluster needs a running clock for its elections, and its event loop blocks a whole
thread. So it takes clock, locks and threads from fresh copies of the built-in modules, which nobody
has patched. A cluster may even be imported while the clock is frozen.

A caller that waits in a green thread (`are_green`) must not block the thread that all green threads
share. It checks every millisecond. In between it sleeps by the patched `time.sleep`, which lets the
others run.
"""

from __future__ import annotations

import _queue
import _thread as patched_thread
import importlib
import logging
import sys
import threading
import time as patched_time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from importlib.machinery import BuiltinImporter
from importlib.util import module_from_spec
from types import BuiltinFunctionType, ModuleType

from ottla.raft.types import Micros

log = logging.getLogger("ottla")

GREEN_WAIT_SECONDS = 0.001


def _fresh(name: str) -> ModuleType:
    """A fresh copy of a built-in module; a module that is not built in is returned itself."""
    spec = BuiltinImporter.find_spec(name)
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_time = _fresh("time")
_thread = _fresh("_thread")


def _monotonic() -> Callable[[], Micros]:
    if sys.platform == "win32":
        read = _time.monotonic_ns
        return lambda: int(read()) // 1000
    # Some tools replace `monotonic_ns` below Python, too. They leave `clock_gettime_ns` alone.
    read_clock, which = _time.clock_gettime_ns, _time.CLOCK_MONOTONIC

    def monotonic_micros() -> Micros:
        at: int = read_clock(which)
        return at // 1000

    return monotonic_micros


monotonic_micros = _monotonic()
"""The clock of all deadlines of this process, in microseconds."""

wall_ns: Callable[[], int] = _time.time_ns
"""The wall clock, ns since 1970."""


monotonic_seconds: Callable[[], float] = (
    _time.monotonic
    if sys.platform == "win32"
    else partial(_time.clock_gettime, _time.CLOCK_MONOTONIC)
)
"""The same clock in seconds, for event loops. They read it in every turn, so it is a C function."""


def are_green() -> bool:
    """Whether `threading` makes green threads (gevent, eventlet): a blocked one blocks all."""
    starters = ("start_new_thread", "start_joinable_thread")
    found = [getattr(patched_thread, each, None) for each in starters]
    return any(each is not None and not isinstance(each, BuiltinFunctionType) for each in found)


def interpreter_ends() -> bool:
    """Whether the interpreter no longer runs background threads, so that nobody may wait for one.
    Only `__del__` methods, and the cleanup of suspended generators, still run then."""
    return sys.is_finalizing()


class Latch:
    """An event that happens once. `wait` returns after it has happened."""

    __slots__ = ("_lock", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        """It has happened."""
        self._lock = _thread.allocate_lock()
        self._lock.acquire()

    def set(self) -> None:
        """Let it happen: all who wait go on."""
        if not self.is_set:
            self.is_set = True
            self._lock.release()

    def wait(self) -> None:
        """Wait until it has happened; not at all if `interpreter_ends`. An interrupt
        (KeyboardInterrupt) ends the wait."""
        if are_green():
            while not self.is_set and not interpreter_ends():
                patched_time.sleep(GREEN_WAIT_SECONDS)
        elif not interpreter_ends():
            with self._lock:
                pass


def make_lock() -> AbstractContextManager[bool]:
    """A lock to hold for a few steps. A signal handler may take it in the middle of these steps."""
    lock: AbstractContextManager[bool] = _thread.RLock()
    return lock


class NativeThread:
    """A thread of the operating system, which does not keep the process alive."""

    def __init__(self, run: Callable[[], None], name: str):
        self._run = run
        self._ended = Latch()
        self._thread = None if are_green() else threading.Thread(None, self._all, name, daemon=True)

    def start(self) -> None:
        """Start the thread. If an interrupt comes meanwhile, it may have started or not."""
        if self._thread is None:
            _thread.start_new_thread(self._all, ())
        else:
            self._thread.start()

    def _all(self) -> None:
        try:
            self._run()
        finally:
            self._ended.set()

    def join(self) -> None:
        """Wait until a thread that runs has ended."""
        self._ended.wait()
        if self._thread is not None and not interpreter_ends():
            self._thread.join()  # It is about to end. After this, no list of threads has it.


class Writer:
    """Runs blocking jobs one after the other, in a thread that the first job starts."""

    def __init__(self, name: str):
        self._name = name
        self._jobs: _queue.SimpleQueue[Callable[[], None] | None] = _queue.SimpleQueue()
        self._thread: NativeThread | None = None

    def run_soon(self, job: Callable[[], None]) -> None:
        """Run `job`, which handles its own errors."""
        self._jobs.put(job)
        if self._thread is None:
            self._thread = NativeThread(self._work, self._name)
            self._thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except BaseException:
                log.exception("%s: a job raised an error, which is a bug of Ottla", self._name)
            del job  # else it would be kept alive until the next one comes

    def close(self) -> None:
        """End the thread after the jobs that were handed over."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join()
