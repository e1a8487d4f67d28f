"""What ends a run early, and exceptions that nodes only log.

A broken promise, a node that stops because of an invariant of its own, a client that gets what no
protocol knows, a cluster that does not settle: each ends a run, and is its verdict. Any other
exception is a bug too, of the broker or of the simulator, and also becomes a verdict: without one
there would be neither a tape nor a page to find it with.

| what was raised | what it is |
|---|---|
| `AnomalyError` | the anomaly that it carries |
| `BrokerBug`, `ProtocolViolation` | sim-I00 |
| `NotLive`, `StandstillError` | sim-I31 |
| `ConfigError` | a refusal, passed on to the caller; that of a plugin is as any other |
| any other `Exception` | sim-I00: the run itself broke, or a plugin, and where |

A run that itself broke fails, but says nothing about what it was to show: it kills no mutant, and a
study counts it in no figure. No fault explains it, nor what was swallowed.

If an exception is raised while a node delivers answers, by its own code or by the caller's, the
node only logs it and goes on (`broker/driver/runner.py`). Then a run would also go on, until the
client tries again and all is well. So an exception that is logged there is sim-I00, unless a store
failed, which faults cause. The log itself cannot be used in a run: each record reads the wall clock
(`outside.py`), and whether there is a log depends on its configuration.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

from ottla.broker.errors import ConfigError
from ottla.log.errors import StoreError
from ottla.sim.chance.outside import replace
from ottla.sim.clients.link import ProtocolViolation
from ottla.sim.ending.ending import NotLive
from ottla.sim.history.history import History
from ottla.sim.invariants.findings import Anomaly, AnomalyError
from ottla.sim.plugins.own import plugin_in
from ottla.sim.world.kernel import StandstillError
from ottla.sim.world.world import BrokerBug

_BUG, _NOT_LIVE = "sim-I00", "sim-I31"
_VERDICTS = (AnomalyError, BrokerBug, ProtocolViolation, NotLive, StandstillError)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
"""Addresses of objects differ between processes, but a replay must give the same text."""
_SAID_BY = ("warning", "error", "critical")
"""The methods of a logger that get exceptions; its `exception` calls `error`."""


class Broke(NamedTuple):
    """The exception with which a run, or a checker of it, itself broke."""

    error: str
    """The name of its class."""
    told: str
    """Its text in one line, with the place where it was raised."""

    def __str__(self) -> str:
        return f"{self.error}: {self.told}"


def told(error: BaseException) -> str:
    """An exception in one line, with the place where it was raised."""
    return str(_broke(error))


def _broke(error: BaseException) -> Broke:
    text = " ".join(str(error).encode(errors="backslashreplace").decode().split())
    return Broke(type(error).__name__, _placeless(text) + _place(error.__traceback__))


def _placeless(text: str) -> str:
    return _ADDRESS.sub("0x…", text)


def _place(trace: TracebackType | None) -> str:
    """The innermost place, with only the name of its file, which does not depend on where Ottla
    is."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f", at {file}:{trace.tb_lineno}"


def itself_broke(error: BaseException) -> str:
    """The text about a run that ended with an exception that is no verdict: what broke."""
    return f"{plugin_in(error) or 'the run itself'} broke: {told(error)}"


def in_order(found: Iterable[Anomaly], unexplained: Iterable[Anomaly]) -> list[Anomaly]:
    """What was found, merged with what no fault explains, in the order of rows."""
    there, bugs = list(found), list(unexplained)
    return sorted([*there, *bugs], key=lambda anomaly: anomaly.eid) if bugs else there


class Swallowed:
    """Exceptions that nodes only logged. `history` is called at that time, because it may change
    between acts."""

    def __init__(self, history: Callable[[], History]):
        self._history = history
        self.error: BaseException | None = None
        """The first exception; None: there was none."""
        self.anomaly: Anomaly | None = None
        """The same as an anomaly."""

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen instead of the log, which gets nothing meanwhile."""
        logger = logging.getLogger("ottla")
        with ExitStack() as stack:
            for each in _SAID_BY:
                replace(stack, logger, each, self._said)
            yield

    def forget(self) -> None:
        """Another run begins."""
        self.error = self.anomaly = None

    def before(self, error: BaseException | None) -> list[Anomaly]:
        """The anomaly, if there is one, unless it also raised `error`."""
        if self.anomaly is None or (error is not None and self.error is error.__cause__):
            return []
        return [self.anomaly]

    def _said(self, message: str, *arguments: Any, exc_info: Any = None, **_: Any) -> None:
        error = sys.exc_info()[1] if exc_info is True else exc_info
        if (
            self.error is None
            and isinstance(error, Exception)
            and not isinstance(error, StoreError)
        ):
            self.error = error
            self.anomaly = anomaly_here(
                self._history(), _BUG, f"{message % arguments}: {told(error)}"
            )


class Breaking:
    """A context for a run, or a part of it. After it, `anomalies` say what ended it early, and what
    was swallowed before; empty: neither."""

    def __init__(self, history: History):
        self.ended: Anomaly | None = None
        """What ended it early."""
        self.broke: Broke | None = None
        """Set if what ended it is no verdict."""
        self.unexplained: list[Anomaly] = []
        """What no fault explains: what was swallowed, and that the run itself broke."""
        self._history = history
        self._swallowed = Swallowed(lambda: history)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._swallowed.heard())
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool:
        self._stack.close()
        self.unexplained += self._swallowed.before(error)
        if error is None:
            return False
        self.ended = _ended_by(error, self._history)
        if self.ended is not None and not isinstance(error, _VERDICTS):
            self.broke = _broke(error)
            self.unexplained.append(self.ended)
        return self.ended is not None

    @property
    def verdicts(self) -> list[Anomaly]:
        """What ended it early, if a fault may explain that."""
        return [] if self.ended is None or self.broke else [self.ended]

    @property
    def anomalies(self) -> list[Anomaly]:
        """All anomalies, in the order of their rows."""
        return in_order(self.verdicts, self.unexplained)


def _ended_by(error: BaseException, history: History) -> Anomaly | None:
    """See the module's docstring. None: the exception is not handled here."""
    if isinstance(error, AnomalyError):
        return error.anomaly
    if not isinstance(error, Exception) or (
        isinstance(error, ConfigError) and not plugin_in(error)
    ):
        return None
    if isinstance(error, (BrokerBug, ProtocolViolation)):
        cause = error.__cause__
        blamed = plugin_in(cause) if cause is not None else ""
        return anomaly_here(history, _BUG, f"{error}, at {blamed}" if blamed else str(error))
    if isinstance(error, NotLive):
        return anomaly_here(history, _NOT_LIVE, str(error))
    if isinstance(error, StandstillError):
        return anomaly_here(history, _NOT_LIVE, f"time stands still: {error}")
    return anomaly_here(history, _BUG, itself_broke(error))


def anomaly_here(history: History, invariant: str, text: str) -> Anomaly:
    """An anomaly at the last row. A run that broke before its first row gets a row that says so, so
    that every anomaly has one."""
    if not history.rows:
        history.add("phase", code="broke")
    return Anomaly(invariant, len(history.rows) - 1, _placeless(text))
