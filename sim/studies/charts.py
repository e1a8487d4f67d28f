"""Charts of a report as plain values: who asks fills them, who draws reads them, and neither knows
the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Span: TypeAlias = tuple[float, float]
"""The ends of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points that belong together in a chart."""

    name: str
    points: tuple[tuple[float, float], ...]
    published: bool = False
    """Somebody else's: drawn as marks of another kind, never joined."""
    spans: tuple[Span | None, ...] = ()
    """How certain each point is; empty when nothing is said of any."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of a table: lines over a number, or bars over names."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    names: tuple[str, ...] = ()
    """With bars: what the places 0, 1, 2... on the x axis are called."""
