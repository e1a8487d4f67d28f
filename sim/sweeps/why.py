"""Why: when did a failure become inevitable? Draws the run's future anew from many of its events.

The choices of a run are kept until a *fork*, an event of its history, and drawn anew after it, many
times. The share of these futures with an anomaly of the same kind (as a shrinker compares them)
says how much was decided by then. Before the decisive event it is that of any run; after it nearly
all futures fail. So the place where the share rises is where to look. Forks are first spread evenly
over the run, then put into the middle of the steepest rise, until its two events are close to each
other.

A share from twenty futures is a rough figure, and would show rises where there are none. What is
decided stays decided, so the true shares never fall. So the steepest rise is taken from the best
fit that never falls (pool adjacent violators: Ayer and others 1955).

All futures of one number are drawn from one seed at every fork, so that two forks differ only by
what lies between them. The same seed gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from ottla.raft.types import Micros
from ottla.sim.chance.choices import Forked
from ottla.sim.history.history import Event
from ottla.sim.run import Outcome, run_choices
from ottla.sim.sweeps.bounds import interval
from ottla.sim.sweeps.tape_file import Case, decode, encode
from ottla.sim.world.world import World

INEVITABLE = 0.95
"""From this share on nearly every future fails."""
SPREAD = 6
"""Forks that are spread evenly."""
REFINED = 7
"""Forks that are put where the share rises."""
CLOSE = 3
"""Events between two forks that need no fork in between."""


class Point(NamedTuple):
    """The result of one fork: `hits` of `tries` futures fail in the same way."""

    eid: int
    """All choices up to this event are kept."""
    at: Micros
    hits: int
    tries: int

    @property
    def share(self) -> tuple[float, float, float]:
        """The share, with the ends of its 95 % interval."""
        return interval(self.hits, self.tries)


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of a run, in the order of their events."""

    invariant: str
    points: tuple[Point, ...]

    @property
    def fit(self) -> list[float]:
        """The share at each point, fitted so that it never falls."""
        return fitted([(each.hits, each.tries) for each in self.points])

    @property
    def rise(self) -> tuple[int, int] | None:
        """Places of the two neighbours between which the fit rises most, of equal ones the last;
        None: it does not rise."""
        fit = self.fit
        rises = [(fit[place] - fit[place - 1], place) for place in range(1, len(fit))]
        rise, last = max(rises, default=(0.0, 0))
        return (last - 1, last) if rise > 0 else None

    @property
    def inevitable(self) -> Point | None:
        """The first point at which the fit has reached `INEVITABLE`."""
        pairs = zip(self.points, self.fit, strict=True)
        return next((point for point, share in pairs if share >= INEVITABLE), None)


def fitted(counts: Sequence[tuple[int, int]]) -> list[float]:
    """The shares that never fall and are closest to these `(hits, tries)`.

    >>> fitted([(1, 4), (3, 4), (1, 4), (4, 4)])
    [0.25, 0.5, 0.5, 1.0]
    """
    pools: list[tuple[int, int, int]] = []
    for hits, tries in counts:
        pools.append((hits, tries, 1))
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] >= pools[-1][0] * pools[-2][1]:
            later, earlier = pools.pop(), pools.pop()
            pools.append((earlier[0] + later[0], earlier[1] + later[1], earlier[2] + later[2]))
    return [hits / tries for hits, tries, size in pools for _ in range(size)]


Futures: TypeAlias = Callable[[int, Iterable[int]], Iterator[bool]]
"""Fork and seeds: whether each of these futures fails in the same way."""


class NothingToAskError(ValueError):
    """The run did not fail."""


def why(
    outcome: Outcome,
    futures: Futures,
    tries: int,
    seed: int,
    progress: Callable[[Point, int], None],
) -> Curve:
    """The curve of a run that failed. `progress` is called with each point, and how many are still
    to come at most. Raises `NothingToAskError`."""
    if not outcome.anomalies:
        raise NothingToAskError("the run did not fail")
    anomaly = outcome.anomalies[0]
    rows = outcome.rows
    end = _last_choice(rows, anomaly.eid)
    points: dict[int, Point] = {}
    places = sorted({end * part // (SPREAD - 1) for part in range(SPREAD)})

    def ask(eid: int, left: int) -> None:
        hits = sum(futures(eid, range(seed, seed + tries)))
        points[eid] = Point(eid, rows[eid].t_us, hits, tries)
        progress(points[eid], left)

    for number, eid in enumerate(places):
        ask(eid, len(places) - number - 1 + REFINED)
    for number in range(REFINED):
        between = _middle(points)
        if between is None:
            break
        ask(between, REFINED - number - 1)
    return Curve(anomaly.invariant, tuple(points[eid] for eid in sorted(points)))


def _last_choice(rows: Sequence[Event], eid: int) -> int:
    """The event that shows the anomaly, or the one before the logs were read."""
    while eid > 0 and rows[eid].kind in {"final", "phase"}:
        eid -= 1
    return eid


def _middle(points: dict[int, Point]) -> int | None:
    """Between the two neighbours with the steepest rise; None: all rises are between close ones."""
    eids = sorted(points)
    fit = fitted([(points[eid].hits, points[eid].tries) for eid in eids])
    rises = [
        (fit[place] - fit[place - 1], (eids[place - 1] + eids[place]) // 2)
        for place in range(1, len(eids))
        if eids[place] - eids[place - 1] > CLOSE
    ]
    rise, middle = max(rises, default=(0.0, 0))
    return middle if rise > 0 else None


# ---- futures


def fails(told: bytes, kind: str, eid: int, seed: int) -> bool:
    """Whether the run of a tape ends in that kind of anomaly if all after event `eid` is drawn
    anew."""
    case = decode(told).case
    worlds: list[World] = []

    def past() -> bool:
        return not worlds or len(worlds[0].history.rows) <= eid

    choices = Forked(case.tape, seed, past)
    outcome = run_choices(choices, case.config, swarm=False, watching=[worlds.append])
    return any(each.kind == kind for each in outcome.anomalies)


def futures_of(outcome: Outcome, pool: ProcessPoolExecutor | None = None) -> Futures:
    """The futures of a run, drawn here or in other processes."""
    told = encode(Case(outcome.config, outcome.tape))
    kind = outcome.anomalies[0].kind

    def futures(eid: int, seeds: Iterable[int]) -> Iterator[bool]:
        ask = partial(fails, told, kind, eid)
        yield from map(ask, seeds) if pool is None else pool.map(ask, seeds)

    return futures
