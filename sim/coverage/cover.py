"""Cover: what a sweep reached, counted over its seeds.

Each seed is run once more, with the rules' decisions watched and a probe at its seams, and reduced
to what it reached: predicates, rules, answers, abstract states; overlaps, durable steps and late
messages, with how often each came about; the functions that it entered, if they are asked for. From
that follow how many seeds reached each, which one first, and how many states each seed added that
no earlier seed had reached.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from ottla.broker.profiles.named import profile_named
from ottla.sim.chance.choices import Drawn
from ottla.sim.coverage.deliveries import DELIVERIES, Delivery
from ottla.sim.coverage.facts import Facts
from ottla.sim.coverage.functions import Function, entered, functions
from ottla.sim.coverage.overlaps import OVERLAPS, Overlap
from ottla.sim.coverage.points import name_of
from ottla.sim.coverage.predicates import PREDICATES
from ottla.sim.coverage.probe import Probe
from ottla.sim.coverage.states import State, states_of
from ottla.sim.coverage.steps import MET, Met
from ottla.sim.machine.processes import go_on, processes
from ottla.sim.run import run_choices
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.world.world import World

_What = TypeVar("_What", bound=Hashable)
_NONE: Mapping[Any, int] = MappingProxyType({})


class Reached(NamedTuple):
    """What one seed reached. The last four are empty if nobody watched."""

    seed: int
    predicates: tuple[str, ...]
    rules: tuple[str, ...]
    answers: tuple[str, ...]
    states: tuple[State, ...]
    overlaps: Mapping[Overlap, int] = _NONE
    steps: Mapping[Met, int] = _NONE
    deliveries: Mapping[Delivery, int] = _NONE
    functions: tuple[Function, ...] = ()


class Tally(NamedTuple):
    """How often something was reached."""

    seeds: int = 0
    first: int | None = None

    def and_by(self, seed: int) -> Tally:
        """The tally after one more seed."""
        return Tally(self.seeds + 1, seed if self.first is None else self.first)


class Count(NamedTuple):
    """How often something came about, and in how many seeds."""

    times: int = 0
    seeds: int = 0
    first: int | None = None

    def and_by(self, seed: int, times: int) -> Count:
        """The count after one more seed, in which it came about so often."""
        return Count(self.times + times, self.seeds + 1, seed if self.first is None else self.first)


@dataclass(slots=True)
class Cover:
    """What a sweep reached."""

    predicates: dict[str, Tally] = field(
        default_factory=lambda: {each.id: Tally() for each in PREDICATES}
    )
    rules: dict[str, Tally] = field(default_factory=dict)
    answers: dict[str, Tally] = field(default_factory=dict)
    growth: list[int] = field(default_factory=list)
    """Known states after each seed, in the order of seeds."""
    states: dict[str, Tally] = field(default_factory=dict)
    """States by name (`points.py`), in the order in which they came."""
    overlaps: dict[Overlap, Count] = field(default_factory=lambda: dict.fromkeys(OVERLAPS, Count()))
    steps: dict[Met, Count] = field(default_factory=lambda: dict.fromkeys(MET, Count()))
    deliveries: dict[Delivery, Count] = field(
        default_factory=lambda: dict.fromkeys(DELIVERIES, Count())
    )
    functions: dict[Function, Tally] = field(default_factory=dict)
    """Every function of the broker, if they are asked for."""

    @classmethod
    def of(cls, config: RunConfig, *, functions_too: bool = False) -> Cover:
        """An empty cover; the rules that can be reached are those of the profile."""
        rules = profile_named(config.profile).rulebook.rules
        known = functions() if functions_too else ()
        return cls(
            rules={row.label: Tally() for row in rules}, functions=dict.fromkeys(known, Tally())
        )

    def add(self, reached: Reached) -> None:
        """Add one seed."""
        for table, names in (
            (self.predicates, reached.predicates),
            (self.rules, reached.rules),
            (self.answers, reached.answers),
            (self.states, tuple(map(name_of, reached.states))),
        ):
            for name in names:
                table[name] = table.get(name, Tally()).and_by(reached.seed)
        _add(self.overlaps, reached.overlaps, reached.seed)
        _add(self.steps, reached.steps, reached.seed)
        _add(self.deliveries, reached.deliveries, reached.seed)
        for function in reached.functions:
            self.functions[function] = self.functions.get(function, Tally()).and_by(reached.seed)
        self.growth.append(len(self.states))

    @property
    def newcomers(self) -> int:
        """States that the last tenth of the seeds added."""
        tenth = max(1, len(self.growth) // 10)
        before = self.growth[-tenth - 1] if len(self.growth) > tenth else 0
        return self.growth[-1] - before if self.growth else 0


def _add(counts: dict[_What, Count], found: Mapping[_What, int], seed: int) -> None:
    for what, times in found.items():
        counts[what] = counts.get(what, Count()).and_by(seed, times)


def reached_by(seed: int, config: RunConfig, *, functions_too: bool = False) -> Reached:
    """Run a seed; returns what it reached."""
    rules: dict[str, None] = {}
    probe = Probe()

    def decided(*what: Any) -> None:
        rules[what[-1].row.label] = None

    def watch(world: World) -> None:
        world.observer.decision_watchers.append(decided)
        probe.watch(world)

    watched: AbstractContextManager[Mapping[Function, None]] = nullcontext({})
    with entered() if functions_too else watched as ran:
        outcome = run_choices(Drawn(seed), config, watching=[watch])
    probe.steps.finish()
    facts = Facts(outcome.rows)
    return Reached(
        seed,
        tuple(each.id for each in PREDICATES if each.holds(facts)),
        tuple(rules),
        tuple(sorted(facts.codes)),
        tuple(states_of(outcome.rows, outcome.config.partitions)),
        probe.overlaps.counts,
        probe.steps.counts,
        probe.deliveries.counts,
        tuple(ran),
    )


def cover(
    seeds: Sequence[int], settings: str, jobs: int, *, functions_too: bool = False
) -> Iterator[Reached]:
    """What each seed reached, in order. `settings` are TOML. Raises `ConfigError`."""
    from_toml(settings)
    if jobs == 1:
        yield from _chunk(seeds, settings, functions_too=functions_too)
        return
    chunks = [seeds[start : start + _CHUNK] for start in range(0, len(seeds), _CHUNK)]
    run = partial(_list, settings=settings, functions_too=functions_too)
    with processes(jobs) as pool:
        for done in pool.map(run, chunks):
            yield from done


_CHUNK = 10


def _list(seeds: Sequence[int], settings: str, *, functions_too: bool) -> list[Reached]:
    return list(_chunk(seeds, settings, functions_too=functions_too))


def _chunk(seeds: Iterable[int], settings: str, *, functions_too: bool) -> Iterator[Reached]:
    config = from_toml(settings)
    for seed in seeds:
        go_on()
        yield reached_by(seed, config, functions_too=functions_too)
