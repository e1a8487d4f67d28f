"""`Scheduler`: lets the nodes of one event loop take turns without a detour through the selector.

Shared by the nodes of one process. Within one callback of the loop it pumps whichever nodes have
work, round after round, so that a produce request crosses leader, followers and leader again at
once. The number of rounds is bounded, so sockets are never starved. So is the number of replicas
that take a turn in one pump (`MOST_TURNS`): a thousand of them may have something to do at once,
and each turn takes some 100 us with all that it brings about.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Protocol

from ottla.broker.event_loop.clockwork import Clockwork
from ottla.broker.event_loop.slices import Slices

log = logging.getLogger("ottla")

MAX_ROUNDS = 32
"""Rounds of pumping in one callback of the loop."""
MOST_TURNS = 32
"""Turns in one pump. A node with more to do is pumped again when the loop has been around."""


class Pumped(Protocol):
    """A node as the scheduler sees it."""

    def pump(self) -> None:
        """Do what there is to do now."""

    def broken(self, error: Exception) -> None:
        """Its own `pump` raised: an invariant does not hold, and it must not go on."""


class Scheduler:
    """See the module's docstring. One per event loop."""

    def __init__(self, clockwork: Clockwork):
        self._call_soon = clockwork.call_soon
        self.slices = Slices(clockwork.call_soon)
        """For what one callback of the loop has no room for."""
        self._ready: list[Pumped] = []
        self._scheduled = False

    def mark(self, node: Pumped) -> None:
        """The node has work: pump it soon."""
        self._ready.append(node)
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self._run)

    def mark_later(self, node: Pumped) -> None:
        """The node has work left: pump it when the loop has been around."""
        self._call_soon(partial(self.mark, node))

    def _run(self) -> None:
        for _ in range(MAX_ROUNDS):
            ready, self._ready = self._ready, []
            if not ready:
                self._scheduled = False
                return
            for node in ready:
                try:
                    node.pump()
                except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
                    self._break(node, error)
        self._call_soon(self._run)

    def _break(self, node: Pumped, error: Exception) -> None:
        try:
            node.broken(error)
        except Exception:
            log.critical("a broken node did not stop cleanly", exc_info=True)
