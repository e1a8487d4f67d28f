"""The command `ottla`, also as `python -m ottla`: `ottla.cli.main`, and what is before it.

Importing the command line takes a part of a second. Ctrl-C in it would be a traceback from inside
of somebody's imports; it ends the process instead, with a command line's usual status.
"""

import os
import signal
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT


def main() -> NoReturn:
    """Run the command line; the process ends with its status."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # who ignores it, as in the background, goes on to
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from ottla.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
