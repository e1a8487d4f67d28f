"""Axes of a chart, which turn numbers into places. An axis is linear, or logarithmic if the numbers
are so far apart that most of them would be one dot on a linear axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

_STEPS = (1, 2, 2.5, 5, 10)
_MARKS = 6
"""About how many marks an axis has."""
_FAR = 30
"""An axis is logarithmic if its ends differ by this factor or more."""


class Axis:
    """One axis, `length` long; `place` counts from its beginning. A linear axis begins at 0.
    `factors` allows a logarithmic axis, which is chosen if it helps."""

    def __init__(self, values: Sequence[float], length: float, *, factors: bool):
        low, high = min(values), max(values)
        self.length = length
        self.factors = factors and low > 0 and high / low >= _FAR
        if self.factors:
            self.start, self.end = _in_factors(low, high)
            self.marks = _decades(self.start, self.end)
        else:
            step = _step(high if high > 0 else 1)
            self.start, self.end = 0.0, step * ceil(max(high, step) / step - 1e-9)
            self.marks = [number * step for number in range(round(self.end / step) + 1)]

    def place(self, value: float) -> float:
        """The place of a value; a value below the beginning is drawn at the beginning."""
        if self.factors:
            share = log10(max(value, self.start) / self.start) / log10(self.end / self.start)
        else:
            share = max(value, self.start) / self.end
        return self.length * share


def _in_factors(low: float, high: float) -> tuple[float, float]:
    """The ends of a logarithmic axis, a little beyond the values."""
    return low / 1.25, high * 1.25


def _decades(start: float, end: float) -> list[float]:
    """1, 2 and 5 times each power of ten; only 1 times if there are more than three powers."""
    digits = (1, 2, 5) if end / start <= 10**3 else (1,)
    exponents = range(floor(log10(start)), ceil(log10(end)) + 1)
    numbers = (digit * 10.0**exponent for exponent in exponents for digit in digits)
    return [each for each in numbers if start <= each <= end]


def _step(top: float) -> float:
    """A round number that fits about `_MARKS` times into `top`."""
    raw = top / _MARKS
    scale = 10.0 ** floor(log10(raw))
    return next(each * scale for each in _STEPS if each * scale >= raw * (1 - 1e-9))
