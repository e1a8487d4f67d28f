"""Conducting an experiment: every variant with every seed, one run after the other.

Unlike a run of a sweep, a run here goes on behind its first anomaly, and nothing but the figures is
judged: what flush policy *off* loses is to be counted. A run that comes to no end has no figures;
then the experiment has none either, and says which run it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.sim.chance.choices import Drawn
from ottla.sim.clients.workload import make_clients
from ottla.sim.ending.breaking import Breaking
from ottla.sim.ending.ending import MS, Ending
from ottla.sim.experiments.model import Experiment, Figures, Key, Measured, Variant
from ottla.sim.history.history import Event
from ottla.sim.run import undisturbed
from ottla.sim.world.world import World


class NoEndError(Exception):
    """A run came to no end: the broker broke, or did not come to rest."""


class Done(NamedTuple):
    """One run is over."""

    runs: int
    """So many are, of all."""
    of: int
    key: Key
    seed: int


def conduct(
    experiment: Experiment, seeds: range, told: Callable[[Done], None] = lambda _: None
) -> Measured:
    """The figures of every variant, in the order of the seeds. `told` hears of each run. Raises
    `NoEndError`."""
    figures: dict[Key, list[Figures]] = {each.key: [] for each in experiment.variants}
    runs = len(experiment.variants) * len(seeds)
    # All variants of a seed first: who stops early has seen the whole table.
    for number, (seed, variant) in enumerate(_all(experiment, seeds), 1):
        try:
            rows = play(variant, seed)
        except NoEndError as error:
            raise NoEndError(
                f"seed {seed} of {', '.join(map(str, variant.key))}: {error}"
            ) from error
        figures[variant.key].append(experiment.measure(rows, variant.config))
        told(Done(number, runs, variant.key, seed))
    return figures


def _all(experiment: Experiment, seeds: range) -> Iterator[tuple[int, Variant]]:
    for seed in seeds:
        for variant in experiment.variants:
            yield seed, variant


def play(variant: Variant, seed: int) -> list[Event]:
    """The history of one run, to its end. Raises `NoEndError` when it has none, and when something
    broke on the way that nobody heard of."""
    with undisturbed():
        world = World(variant.config, Drawn(seed))
        with Breaking(world.history) as playing:
            carry_out(world, Ending(world, make_clients(world)), variant.plan)
        for anomaly in playing.anomalies:
            raise NoEndError(anomaly.text)
        return world.history.rows


def carry_out(world: World, ending: Ending, plan: Callable[[World], None] | None) -> None:
    """Everything that happens in a run, from the start of its nodes to the last record read. Raises
    what ends a run (`breaking.py`); the world's history is there all the same, and so is what the
    ending has excused."""
    world.boot()
    if plan is not None:
        plan(world)
    ending.clients.start()
    world.kernel.run(world.kernel.now + world.config.load_ms * MS)
    ending.settle()
    ending.finish()
    world.observer.final(world)
