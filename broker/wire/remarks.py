"""`Remarks`: messages about clients in the log, each only once.

A client that is refused asks again and again; a line for each request would hide all other lines.
What was said is remembered as long as the cluster exists. The number is limited, because clients
choose their client ids.
"""

from __future__ import annotations

import logging

log = logging.getLogger("ottla")

MOST = 1000
"""How many different remarks are logged; a last line says that no more follow."""
LONGEST = 300
"""Characters of a line, at most; a client id may have 32,767."""


class Remarks:
    """Logs each remark once."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def once(self, key: str, line: str) -> None:
        """Log `line` as a warning, unless a line was logged for this key before."""
        key = key[:LONGEST]
        if key in self._said or len(self._said) >= MOST:
            return
        self._said.add(key)
        log.warning("%s", line if len(line) <= LONGEST else line[:LONGEST] + "...")
        if len(self._said) == MOST:
            log.warning("%d remarks about clients were made; no more will be", MOST)
