"""Counts work instead of timing it: the count is the same everywhere, so a test can limit it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ottla.broker.event_loop.collecting import nothing_collected


def lines_of(call: Callable[[], object]) -> int:
    """How many lines of Python a call runs, with those of all that it calls. Work of C code within
    one line is not counted."""
    return _counted(call, "line")


def instructions_of(call: Callable[[], object]) -> int:
    """The same in bytecode instructions, which also count each iteration of a loop within one line,
    as in a comprehension."""
    return _counted(call, "opcode")


def _counted(call: Callable[[], object], what: str) -> int:
    found = 0

    def count(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal found
        frame.f_trace_opcodes = what == "opcode"
        found += event == what
        return count

    before = sys.gettrace()
    with nothing_collected():
        sys.settrace(count)
        try:
            call()
        finally:
            sys.settrace(before)
    return found
