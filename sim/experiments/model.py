"""What an experiment is: variants that are run, a measure of each run, and what follows from all.

An experiment is a value. Each of its variants is a whole configuration of a run, and maybe a plan
of what goes wrong in it; each is run once with every seed, nothing being drawn but what the
configuration leaves to chance (no swarm). So an experiment is the same everywhere, every time.

    variants x seeds -> runs -> `measure` -> figures -> `report` -> table and chart

`report` is pure: it sees figures, in the order of the seeds, and writes the table. Every line ends
with the reason why its figures are not the published ones, or what they rest on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ottla.sim.history.history import Event
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import World

Key: TypeAlias = tuple[str | int | float, ...]
"""What a variant is called: the values of what varies."""
Figures: TypeAlias = Mapping[str, float]
"""What was measured in one run, by name."""
Measured: TypeAlias = Mapping[Key, Sequence[Figures]]
"""The figures of each variant, one for each seed."""
Span: TypeAlias = tuple[float, float]
"""The ends of a 95 % interval."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One configuration that is run."""

    key: Key
    config: RunConfig
    plan: Callable[[World], None] | None = None
    """Done when the load begins: arranges what goes wrong."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    head: str
    number: bool = True
    """Numbers stand on the right."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table."""

    cells: tuple[str, ...]
    reason: str
    """Why it is so, in one or two sentences."""


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


@dataclass(frozen=True, slots=True)
class Report:
    """What came of an experiment."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    charts: tuple[Chart, ...]
    findings: tuple[str, ...]
    """What the table says, in sentences made of its numbers."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """See the module's text."""

    name: str
    title: str
    question: str
    published: str
    """Whose figures they are, and what they are of."""
    conditions: tuple[tuple[str, str], ...]
    """What is fixed: a thing, and how it is."""
    variants: tuple[Variant, ...]
    measure: Callable[[Sequence[Event], RunConfig], Figures]
    report: Callable[[Measured], Report]
    seeds: int
    """How many, unless more are asked for."""


def mean(measured: Sequence[Figures], name: str) -> float:
    """The mean of one figure over all seeds."""
    return sum(each[name] for each in measured) / len(measured)


def total(measured: Sequence[Figures], name: str) -> float:
    """The sum of one figure over all seeds."""
    return sum(each[name] for each in measured)
