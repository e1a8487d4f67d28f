"""`CatchingUp`: when a started node may serve clients, and whether its catalog is complete.

After a start, the node's copy of the controller's log may lack entries. The node asks the
controller how far its log is applied, and has caught up once it has applied as much. It is not
enough to know the leader: a follower that was away first hears of an older commit, which its log
already has.

Until then no client is served, but for at most `CATCH_UP_TIMEOUTS` election timeouts. If no
controller can be reached, the node then serves without having caught up, and goes on asking. A
topic that its catalog lacks may exist, so no client is told that it does not
(`Host.knows_all_topics`): a client would give up its records.

A node that has not heard the controller's leader for the same time also counts as not caught up,
because topics may have been created since (sim-S71). Once it hears a leader, it asks again.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.config import ClusterConfig
from ottla.broker.controller.client import RETRY_AFTER
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.clockwork import Cancel
from ottla.broker.turn.commands import Control, Position
from ottla.raft.types import Micros

CATCH_UP_TIMEOUTS = 2
"""In election timeouts: how long clients of a started node wait at most, and how long a catalog
counts as complete after the controller's leader was last known."""


def _nothing() -> None:
    """Cancels nothing, because no timer runs."""


class CatchingUp:
    """See the module's docstring. The node provides the functions that it calls."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        now: Callable[[], Micros],
        call_at: Callable[[Micros, Callable[[], None]], Cancel],
        control: Control,
        serve: Callable[[], None],
    ):
        self.serving = False
        """Whether clients are served."""
        self._finished = False
        """Whether the node has applied as much as the controller had when it was asked."""
        self._lost: Micros | None = None
        """Since when no leader of the controller is known; None while one is known."""
        self._patience: Micros = CATCH_UP_TIMEOUTS * config.election_timeout_ms * 1000
        self._now = now
        self._call_at = call_at
        self._control = control
        self._serve = serve
        self._asking = False
        self._left = False
        self._stop_waiting: Cancel = _nothing

    def begin(self) -> None:
        """The node takes part from now on; the waiting time of clients begins."""
        self._stop_waiting = self._call_at(self._now() + self._patience, self._let_in)

    @property
    def informed(self) -> bool:
        """Whether the catalog has everything that the controller had decided a short time ago."""
        lost = self._lost
        return self._finished and (lost is None or self._now() - lost < self._patience)

    def controller_heard(self) -> None:
        """A leader of the controller is known. Called in the middle of a turn."""
        if self._finished and not self.informed:
            self._finished = self._asking = False
        self._lost = None
        if not self._asking:
            self._asking = True
            self._call_at(0, self._ask)

    def controller_lost(self) -> None:
        """No leader of the controller is known any more."""
        if self._lost is None:
            self._lost = self._now()

    def leave(self) -> None:
        """The node stops: cancel the timer and ask no more."""
        self._left = True
        self._stop_waiting()

    def _ask(self) -> None:
        if not self._left:
            self._control(Position(), self._answered, self._now() + self._patience)

    def _answered(self, error: ErrorCode, _: object) -> None:
        if self._left:
            return
        if error is ErrorCode.NONE:
            self._finished = True
        else:
            self._call_at(self._now() + RETRY_AFTER, self._ask)
        if not self.serving:
            self._stop_waiting()
            self._stop_waiting = self._call_at(0, self._let_in)  # after the turn that runs now

    def _let_in(self) -> None:
        if not self._left:
            self.serving = True
            self._serve()
