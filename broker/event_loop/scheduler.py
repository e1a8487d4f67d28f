"""`Scheduler`: lets the nodes of one event loop take turns without a detour through the selector.

The nodes of one process share it. Within one callback of the loop it pumps the nodes that have
work, round after round. So a produce request goes from the leader to the followers and back within
one callback. The number of rounds is bounded, so that sockets are never starved. The number of
replicas that take a turn in one pump is bounded, too (`MOST_TURNS`): a thousand replicas may have
work at the same time, and a turn with all its effects takes some 100 us.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Protocol

from ottla.broker.event_loop.clockwork import Clockwork
from ottla.broker.event_loop.collecting import nothing_collected
from ottla.broker.event_loop.slices import Slices

log = logging.getLogger("ottla")

MAX_ROUNDS = 32
"""Rounds of pumping in one callback of the loop."""
MOST_TURNS = 32
"""Turns in one pump. A node with more work is pumped again in the loop's next iteration."""


class Pumped(Protocol):
    """A node as the scheduler sees it."""

    def pump(self) -> None:
        """Do all work that is due now."""

    def broken(self, error: Exception) -> None:
        """Stop: `pump` raised, so an invariant does not hold."""


class Scheduler:
    """See the module's docstring. One per event loop."""

    def __init__(self, clockwork: Clockwork):
        self._call_soon = clockwork.call_soon
        self.slices = Slices(clockwork.call_soon)
        """Nodes for which this callback of the loop had no room."""
        self._ready: list[Pumped] = []
        self._scheduled = False

    def mark(self, node: Pumped) -> None:
        """The node has work: pump it soon."""
        self._ready.append(node)
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self._run)

    def mark_later(self, node: Pumped) -> None:
        """The node has work left: pump it in the loop's next iteration."""
        self._call_soon(partial(self.mark, node))

    def _run(self) -> None:
        if self.slices.busy:
            # New replicas, perhaps: the objects of their elections stay, too. Counted as those of
            # others, they brought a full collection about: 600 ms for 1,000 topics.
            with nothing_collected(aged=True):
                self._go_round()
        else:
            self._go_round()

    def _go_round(self) -> None:
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
