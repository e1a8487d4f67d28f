"""Axes of a chart: from numbers to places, in equal steps, or in equal factors where numbers lie so
far apart that in equal steps most of them would be one dot.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

_STEPS = (1, 2, 2.5, 5, 10)
_MARKS = 6
"""Marks on an axis, about."""
_FAR = 30
"""Factor between the ends from which an axis goes in factors."""


class Axis:
    """One axis, `length` long; `place` counts from its beginning. From 0 on, unless it goes in
    factors, which it does where it may (`factors`) and where it helps."""

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
        """Where a value is; what lies below the beginning is drawn at it."""
        if self.factors:
            share = log10(max(value, self.start) / self.start) / log10(self.end / self.start)
        else:
            share = max(value, self.start) / self.end
        return self.length * share


def _in_factors(low: float, high: float) -> tuple[float, float]:
    """The ends, a little wider than the values."""
    return low / 1.25, high * 1.25


def _decades(start: float, end: float) -> list[float]:
    """1, 2 and 5 of each power of ten; over more than three of them only 1."""
    digits = (1, 2, 5) if end / start <= 10**3 else (1,)
    exponents = range(floor(log10(start)), ceil(log10(end)) + 1)
    numbers = (digit * 10.0**exponent for exponent in exponents for digit in digits)
    return [each for each in numbers if start <= each <= end]


def _step(top: float) -> float:
    """A round number that goes about `_MARKS` times into `top`."""
    raw = top / _MARKS
    scale = 10.0 ** floor(log10(raw))
    return next(each * scale for each in _STEPS if each * scale >= raw * (1 - 1e-9))
