"""`CatchingUp`: when a node that has just been started may let clients in, and believe its catalog.

Its own log of the controller's may end anywhere before what is decided. It asks the controller how
far that is, and has caught up once it has applied as much; its leader being known is not enough: a
follower that has been away hears of a commit in its own old log first.

Until then no client is served, `CATCH_UP_TIMEOUTS` at most: with no controller in reach the node
serves all the same, and goes on asking. What its catalog lacks may exist then, so nobody is told
that it does not (`Host.knows_all_topics`): clients give up their records for that.

Nor does a node know what is decided that has not heard the controller's leader for as long: topics
may have been created since (sim-S71). Once it hears one it asks again.
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
"""Election timeouts that clients of a new life wait at most for the controller's log, and for which
a catalog counts as the controller's that was."""


def _nothing() -> None:
    """No timer runs."""


class CatchingUp:
    """See the module's text. Its owner, the node, provides the way out as callables."""

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
        """Clients are let in."""
        self._finished = False
        """All was applied up to where the controller said that its log was decided."""
        self._lost: Micros | None = None
        """Since when nobody is known to lead the controller; None while somebody is."""
        self._patience: Micros = CATCH_UP_TIMEOUTS * config.election_timeout_ms * 1000
        self._now = now
        self._call_at = call_at
        self._control = control
        self._serve = serve
        self._asking = False
        self._left = False
        self._stop_waiting: Cancel = _nothing

    def begin(self) -> None:
        """The node takes part: from here on clients wait."""
        self._stop_waiting = self._call_at(self._now() + self._patience, self._let_in)

    @property
    def informed(self) -> bool:
        """Whether the catalog has all that the controller had decided a short while ago."""
        lost = self._lost
        return self._finished and (lost is None or self._now() - lost < self._patience)

    def controller_heard(self) -> None:
        """Somebody is known to lead the controller, in the middle of a turn."""
        if self._finished and not self.informed:
            self._finished = self._asking = False
        self._lost = None
        if not self._asking:
            self._asking = True
            self._call_at(0, self._ask)

    def controller_lost(self) -> None:
        """Nobody is, any more."""
        if self._lost is None:
            self._lost = self._now()

    def leave(self) -> None:
        """The node stops: nothing is left to wait for."""
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
            self._stop_waiting = self._call_at(0, self._let_in)  # behind the turn that runs now

    def _let_in(self) -> None:
        if not self._left:
            self.serving = True
            self._serve()
