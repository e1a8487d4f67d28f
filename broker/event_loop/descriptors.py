"""Whether the process may open as many more files and sockets as something that begins needs.

Some of those who open one cannot fail: uvloop ends the whole process if its first loop gets no
pipe. So the number is checked before they begin.
"""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack

OF_A_LOOP = 16
"""What an event loop and its signals need to begin, with some to spare: a loop that gets too few
does not come to an end, either."""
OF_A_NODE = 8
"""A node's folder, store, port and first clients."""
TOO_FEW = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of the process, or of the machine, whatever is opened."""
ADVICE = "raise the limit of open files (ulimit -n)"
FEWER_NODES = f"{ADVICE}, or start fewer nodes"


def check_descriptors(wanted: int) -> None:
    """Check that `wanted` more files can be open at once. Raises `OSError` with advice."""
    try:
        with ExitStack() as taken:
            for _ in range(wanted):
                taken.callback(os.close, os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}; {FEWER_NODES}") from None
