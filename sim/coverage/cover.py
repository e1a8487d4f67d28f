"""Cover: what a sweep reached, counted over its seeds.

Each seed is run once more, with the rules' decisions watched, and reduced to what it reached:
predicates, rules, answers, abstract states. From that follow how often each was reached, by which
seed first, and how many states each seed added that no earlier seed had reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.broker.profiles.named import profile_named
from ottla.sim.chance.choices import Drawn
from ottla.sim.coverage.facts import Facts
from ottla.sim.coverage.points import name_of
from ottla.sim.coverage.predicates import PREDICATES
from ottla.sim.coverage.states import State, states_of
from ottla.sim.machine.processes import go_on, processes
from ottla.sim.run import run_choices
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.world.world import World


class Reached(NamedTuple):
    """What one seed reached."""

    seed: int
    predicates: tuple[str, ...]
    rules: tuple[str, ...]
    answers: tuple[str, ...]
    states: tuple[State, ...]


class Tally(NamedTuple):
    """How often something was reached."""

    seeds: int = 0
    first: int | None = None

    def and_by(self, seed: int) -> Tally:
        """The tally after one more seed."""
        return Tally(self.seeds + 1, seed if self.first is None else self.first)


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

    @classmethod
    def of(cls, config: RunConfig) -> Cover:
        """An empty cover; the rules that can be reached are those of the profile."""
        rules = profile_named(config.profile).rulebook.rules
        return cls(rules={row.label: Tally() for row in rules})

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
        self.growth.append(len(self.states))

    @property
    def newcomers(self) -> int:
        """States that the last tenth of the seeds added."""
        tenth = max(1, len(self.growth) // 10)
        before = self.growth[-tenth - 1] if len(self.growth) > tenth else 0
        return self.growth[-1] - before if self.growth else 0


def reached_by(seed: int, config: RunConfig) -> Reached:
    """Run a seed; returns what it reached."""
    rules: dict[str, None] = {}

    def decided(*what: Any) -> None:
        rules[what[-1].row.label] = None

    def watch(world: World) -> None:
        world.observer.decision_watchers.append(decided)

    outcome = run_choices(Drawn(seed), config, watching=[watch])
    facts = Facts(outcome.rows)
    return Reached(
        seed,
        tuple(each.id for each in PREDICATES if each.holds(facts)),
        tuple(rules),
        tuple(sorted(facts.codes)),
        tuple(states_of(outcome.rows, outcome.config.partitions)),
    )


def cover(seeds: Sequence[int], settings: str, jobs: int) -> Iterator[Reached]:
    """What each seed reached, in order. `settings` are TOML. Raises `ConfigError`."""
    from_toml(settings)
    if jobs == 1:
        yield from _chunk(seeds, settings)
        return
    chunks = [seeds[start : start + _CHUNK] for start in range(0, len(seeds), _CHUNK)]
    with processes(jobs) as pool:
        for done in pool.map(_list, chunks, [settings] * len(chunks)):
            yield from done


_CHUNK = 10


def _list(seeds: Sequence[int], settings: str) -> list[Reached]:
    return list(_chunk(seeds, settings))


def _chunk(seeds: Iterable[int], settings: str) -> Iterator[Reached]:
    config = from_toml(settings)
    for seed in seeds:
        go_on()
        yield reached_by(seed, config)
