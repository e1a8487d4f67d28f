"""How long things take: a least span plus a random one.

The random span is exponential, by one choice among `QUANTILES` equally likely values. So it is a
whole number on every machine, and its plain choice (0) is almost nothing. Links may have other
shapes (`SHAPES`) with the same mean: a heavy tail, or a few spans that are much longer than all
others, as on a path with a queue that is sometimes full (sim-N1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import erf, exp, log, sqrt

from ottla.raft.types import Micros
from ottla.sim.chance.choices import Stream

QUANTILES = 256
_SCALE = 1000
_EXPONENTIAL = tuple(
    round(-_SCALE * log(1 - (each + 0.5) / QUANTILES)) for each in range(QUANTILES)
)
"""Quantiles of an exponential distribution with mean 1, in thousandths."""


def exponential(stream: Stream, mean: Micros) -> Micros:
    """A span with that mean. If the mean is 0, it is 0, and no choice is made."""
    return mean * _EXPONENTIAL[stream.below(QUANTILES)] // _SCALE if mean else 0


def _lognormal() -> Sequence[int]:
    """Quantiles of a log-normal distribution, whose logarithm has deviation 1."""
    return [
        round(_SCALE * exp(_normal((each + 0.5) / QUANTILES) - 0.5)) for each in range(QUANTILES)
    ]


def _normal(share: float) -> float:
    """The quantile of the standard normal distribution at `share`. By bisection, because no module
    that is loaded anyway has it."""
    low, high = -8.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        if (1 + erf(middle / sqrt(2))) / 2 < share:
            low = middle
        else:
            high = middle
    return low


def _bimodal() -> Sequence[int]:
    """Seven of eight take about a fifth of the mean, and the eighth more than six times the
    mean."""
    near = QUANTILES * 7 // 8
    far = QUANTILES - near
    return [each * 400 // near for each in range(near)] + [
        6_000 + each * 1_200 // far for each in range(far)
    ]


SHAPES: Mapping[str, Callable[[], Sequence[int]]] = {
    "exponential": lambda: _EXPONENTIAL,
    "lognormal": _lognormal,
    "bimodal": _bimodal,
}
"""Quantiles with mean 1, in thousandths, the smallest first."""


@cache
def spans(least: Micros, mean: Micros, shape: str = "exponential") -> tuple[Micros, ...]:
    """The spans that something may take, equally likely, the plain one first: `least` plus a
    quantile of that shape. Made once, because they are drawn from so often."""
    tops = (mean * each // _SCALE for each in SHAPES[shape]()) if mean else (0,)
    return tuple(least + each for each in tops)
