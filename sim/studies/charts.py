"""Charts of a report as plain values: queries fill them, drawings read them, and neither knows the
other."""

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
    """A figure from elsewhere: drawn with other marks, never joined."""
    spans: tuple[Span | None, ...] = ()
    """The interval of each point; empty: none is known."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of a table: lines over a number, or bars over names."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    names: tuple[str, ...] = ()
    """For bars: the names of the places 0, 1, 2... on the x axis."""
