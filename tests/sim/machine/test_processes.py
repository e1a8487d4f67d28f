"""Processes that run seeds: what stops a command is heard, but not amid the birth of a process."""

import os
import signal
from concurrent.futures import Future, ProcessPoolExecutor
from threading import Thread

import pytest

from ottla.sim.machine.processes import processes


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_stops_a_command_is_heard_once_the_process_is_born(monkeypatch, number):
    """A child told of it in a traceback, or was waited for though nobody had written it down."""
    order = []

    def born(*_):
        other = Thread(target=os.kill, args=(os.getpid(), number))  # takes the signal itself
        other.start()
        other.join()
        order.append("born")
        return Future()

    def heard(*_):
        order.append("heard")
        raise KeyboardInterrupt

    monkeypatch.setattr(ProcessPoolExecutor, "submit", born)
    before = signal.signal(number, heard)
    try:
        with pytest.raises(KeyboardInterrupt), processes(1) as pool:
            pool.submit(print)
        assert signal.getsignal(number) is heard
    finally:
        signal.signal(number, before)
    assert order == ["born", "heard"]
