"""The command `ottla`, also as `python -m ottla`: `ottla.cli.main`, and what is before it.

Importing the command line takes a part of a second. Ctrl-C in it would be a traceback from inside
of somebody's imports; it ends the process instead, with a command line's usual status.
"""

import os
import signal
import sys
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT


def main() -> NoReturn:
    """Run the command line; the process ends with its status."""
    _fill_standard_streams()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # who ignores it, as in the background, goes on to
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from ottla.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


def _fill_standard_streams() -> None:
    """Whoever starts a service may close its standard streams. What is opened next would get their
    numbers, and what is said there would go into it."""
    filled = 0
    while filled < 3:
        filled = os.open(os.devnull, os.O_RDWR)
    os.close(filled)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - to the end


if __name__ == "__main__":
    main()
