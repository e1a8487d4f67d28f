"""The outcome of a request, as a client sees it, and what is certain about a batch after it.

An outcome is the broker's error code, or that there was no answer. Whether a batch may be stored
after an outcome does not depend on the client's rules. It is what the broker promises with each
code (K-CODES), and decides between `fail` and `info` in the history.
"""

from __future__ import annotations

from enum import Enum, unique
from typing import TypeAlias

from ottla.broker.errors import INDEFINITE_CODES, ErrorCode


@unique
class Lost(Enum):
    """There was no answer, and there will be none."""

    DISCONNECTED = "connection gone"
    TIMED_OUT = "no answer in time"


@unique
class GivenUp(Enum):
    """Why a client ends a record by itself."""

    EXPIRED = "delivery timeout"
    CRASHED = "client crashed"
    FATAL = "producer in a fatal state"


Outcome: TypeAlias = ErrorCode | Lost
Reason: TypeAlias = Outcome | GivenUp


def may_be_stored(outcome: Outcome) -> bool:
    """Whether a batch may be in the log after it was sent and had this outcome."""
    return isinstance(outcome, Lost) or outcome in INDEFINITE_CODES or not outcome
