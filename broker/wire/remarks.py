"""What the log says about clients: each thing once, however often its cause comes again.

A client that is refused asks again and again, so that a line for each request would bury all
others. What was said is remembered for the cluster's life, and bounded: ids of clients are chosen
by clients.
"""

from __future__ import annotations

import logging

log = logging.getLogger("ottla")

MOST = 1000
"""Different remarks; what follows is left out, which is the last remark."""
LONGEST = 300
"""Characters of a line; a client id may have 32,767."""


class Remarks:
    """Says things once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def once(self, key: str, line: str) -> None:
        """Log `line` as a warning, unless that was done for this key."""
        key = key[:LONGEST]
        if key in self._said or len(self._said) >= MOST:
            return
        self._said.add(key)
        log.warning("%s", line if len(line) <= LONGEST else line[:LONGEST] + "...")
        if len(self._said) == MOST:
            log.warning("%d remarks about clients were made; no more will be", MOST)
