"""What came of a request, as a client sees it, and what of a batch is certain after it.

An outcome is the broker's code, or that there was no answer at all. Whether a batch may be stored
after an outcome is not for a client's rules to say: it is what the broker promises with each code
(K-CODES), and it decides between `fail` and `info` in the history.
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
    """Whether a batch may be in the log after it was sent and this came of it."""
    return isinstance(outcome, Lost) or outcome in INDEFINITE_CODES or not outcome
