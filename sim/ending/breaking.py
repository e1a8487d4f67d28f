"""What ends a run before its time, and what is raised in one where nobody hears of it.

A promise that is seen broken, a node that stops because of an invariant of its own, a client that
is told what no protocol knows, a cluster that does not come to rest: each ends a run, and is its
verdict. Whatever else does is a bug too, of the broker or of the simulator, and no less of a
verdict: without one there would be neither a tape nor a page to look for it with.

| what was raised | what it is |
|---|---|
| `AnomalyError` | the anomaly that it carries |
| `BrokerBug`, `ProtocolViolation` | sim-I00 |
| `NotLive`, `StandstillError` | sim-I31 |
| `ConfigError` | a refusal: the caller's, as it was raised |
| any other `Exception` | sim-I00: the run itself broke, and where |

A run that broke itself fails, but says nothing of what was to be shown with it: it kills no mutant,
and a study counts it in no figure. No fault explains it either, nor what was swallowed.

Where a node delivers answers it goes on whatever is raised there, by code of its own or of who
asked, and no more than its log tells of it (`broker/driver/runner.py`). A run would go on as well,
until the client tries again and all is well. So what is said there of an exception is sim-I00,
unless a store failed, which faults make it do. The log itself is no use in a run: each of its
records reads the wall clock (`outside.py`), and whether there is one depends on how somebody set it
up.
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
from ottla.sim.world.kernel import StandstillError
from ottla.sim.world.world import BrokerBug

_BUG, _NOT_LIVE = "sim-I00", "sim-I31"
_VERDICTS = (AnomalyError, BrokerBug, ProtocolViolation, NotLive, StandstillError)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
"""Where an object lies is another place in each process, and a replay is to say the same."""
_SAID_BY = ("warning", "error", "critical")
"""How the log is told of exceptions; its `exception` is an `error`."""


class Broke(NamedTuple):
    """The exception that a run, or a judge of it, itself broke with."""

    error: str
    """The name of its class."""
    told: str
    """Its text in one line, with the place it comes from."""

    def __str__(self) -> str:
        return f"{self.error}: {self.told}"


def told(error: BaseException) -> str:
    """An exception in one line, with the place it comes from."""
    return str(_broke(error))


def _broke(error: BaseException) -> Broke:
    text = " ".join(str(error).encode(errors="backslashreplace").decode().split())
    return Broke(type(error).__name__, _placeless(text) + _place(error.__traceback__))


def _placeless(text: str) -> str:
    return _ADDRESS.sub("0x…", text)


def _place(trace: TracebackType | None) -> str:
    """The innermost one; the name of its file alone, which is the same wherever Ottla lies."""
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f", at {file}:{trace.tb_lineno}"


def itself_broke(error: BaseException) -> str:
    """What is said of a run that ended with an exception which is no verdict."""
    return f"the run itself broke: {told(error)}"


def in_order(found: Iterable[Anomaly], unexplained: Iterable[Anomaly]) -> list[Anomaly]:
    """What was found, with what no fault explains (if there is any) where its rows are."""
    there, bugs = list(found), list(unexplained)
    return sorted([*there, *bugs], key=lambda anomaly: anomaly.eid) if bugs else there


class Swallowed:
    """What nodes only told their log. `history` is asked for when they do: it may be another one
    from one time to the next."""

    def __init__(self, history: Callable[[], History]):
        self._history = history
        self.error: BaseException | None = None
        """The first exception; None while there is none."""
        self.anomaly: Anomaly | None = None
        """The same as an anomaly."""

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen to the log meanwhile: it is told nothing itself."""
        logger = logging.getLogger("ottla")
        with ExitStack() as stack:
            for each in _SAID_BY:
                replace(stack, logger, each, self._said)
            yield

    def forget(self) -> None:
        """Another run begins."""
        self.error = self.anomaly = None

    def before(self, error: BaseException | None) -> list[Anomaly]:
        """The anomaly, if there is one, and it is not what then raised `error` itself."""
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
    """A context in which a run, or a part of it, goes on: behind it `anomalies` say what ended it
    early, and what was swallowed before. Empty: neither."""

    def __init__(self, history: History):
        self.ended: Anomaly | None = None
        """What ended it early."""
        self.broke: Broke | None = None
        """Set if that is no verdict."""
        self.unexplained: list[Anomaly] = []
        """What no fault explains: what was swallowed, and that it broke."""
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
        """What ended it early, if a fault may explain it."""
        return [] if self.ended is None or self.broke else [self.ended]

    @property
    def anomalies(self) -> list[Anomaly]:
        """All there are, in order of their rows."""
        return in_order(self.verdicts, self.unexplained)


def _ended_by(error: BaseException, history: History) -> Anomaly | None:
    """See the module's docstring. None: it is somebody else's to handle."""
    if isinstance(error, AnomalyError):
        return error.anomaly
    if isinstance(error, ConfigError) or not isinstance(error, Exception):
        return None
    if isinstance(error, (BrokerBug, ProtocolViolation)):
        return anomaly_here(history, _BUG, str(error))
    if isinstance(error, NotLive):
        return anomaly_here(history, _NOT_LIVE, str(error))
    if isinstance(error, StandstillError):
        return anomaly_here(history, _NOT_LIVE, f"time stands still: {error}")
    return anomaly_here(history, _BUG, itself_broke(error))


def anomaly_here(history: History, invariant: str, text: str) -> Anomaly:
    """An anomaly of the last row there is. A run that broke before its first has one that says so:
    who asks for the row of an anomaly is to find one."""
    if not history.rows:
        history.add("phase", code="broke")
    return Anomaly(invariant, len(history.rows) - 1, _placeless(text))
