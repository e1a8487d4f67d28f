"""How long things take: a least span, and something random on top.

What comes on top is exponential, by one choice among `QUANTILES` equally likely ones, so that it is
a whole number on every machine and its plain choice (0) is next to nothing.
"""

from __future__ import annotations

from functools import cache
from math import log

from ottla.raft.types import Micros
from ottla.sim.choices import Stream

QUANTILES = 256
_SCALE = 1000
_EXPONENTIAL = tuple(
    round(-_SCALE * log(1 - (each + 0.5) / QUANTILES)) for each in range(QUANTILES)
)
"""Quantiles of an exponential distribution with mean 1, in thousandths."""


def exponential(stream: Stream, mean: Micros) -> Micros:
    """A span with that mean; nothing when the mean is nothing, and then no choice is made."""
    return mean * _EXPONENTIAL[stream.below(QUANTILES)] // _SCALE if mean else 0


@cache
def spans(least: Micros, mean: Micros) -> tuple[Micros, ...]:
    """What something that takes `least` and an exponential span on top may take, each as likely as
    the others, the plain one first: to pick from where it is asked for all the time."""
    tops = (mean * each // _SCALE for each in _EXPONENTIAL) if mean else (0,)
    return tuple(least + each for each in tops)
