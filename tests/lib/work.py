"""Work, counted and not timed: the same each time and everywhere, so that a test can bound it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from ottla.broker.event_loop.collecting import nothing_collected


def lines_of(call: Callable[[], object]) -> int:
    """Lines of Python that a call runs, with those of all that it calls. What C code does within
    one line is not seen."""
    return _counted(call, "line")


def instructions_of(call: Callable[[], object]) -> int:
    """The same in instructions of bytecode: of a loop within one line, as in a comprehension, each
    turn is seen."""
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
