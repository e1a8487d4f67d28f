"""The command `ottla`, also as `python -m ottla`: runs `ottla.cli.main` after two precautions.

The imports of the command line take a fraction of a second. Ctrl-C during these imports would print
a traceback; here it ends the process with the usual status of an interrupted command.
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
    """Open standard streams that the parent process closed. Otherwise the next open file would get
    such a stream's number, and the output would go into that file."""
    filled = 0
    while filled < 3:
        filled = os.open(os.devnull, os.O_RDWR)
    os.close(filled)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - to the end


if __name__ == "__main__":
    main()
