"""Trace validation: what the specification says of runs (`sim/specification`), step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ottla.sim.machine.processes import go_on, processes
from ottla.sim.run import Outcome, run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml

_CHUNK = 10


class Validation(NamedTuple):
    """What came out for one run."""

    seed: int | None
    """None: it was a tape."""
    digest: str
    verdict: str
    """What the invariants say."""
    reason: str
    steps: int
    """How many were checked: all of the run, or until one is not allowed."""
    told: tuple[str, ...]
    """The step that is not allowed, what is wrong with it, the state before, what is allowed, and
    where it is in the history. Empty: all are allowed."""


def validate(seeds: Sequence[int], settings: str, jobs: int) -> Iterator[Validation]:
    """Run seeds, and say what the specification found, in order. `settings` are TOML. Raises
    `ConfigError`."""
    from_toml(settings)
    if jobs == 1:
        yield from _chunk(seeds, settings)
        return
    chunks = [seeds[start : start + _CHUNK] for start in range(0, len(seeds), _CHUNK)]
    with processes(jobs) as pool:
        for done in pool.map(partial(_list, settings=settings), chunks):
            yield from done


def _list(seeds: Sequence[int], settings: str) -> list[Validation]:
    return list(_chunk(seeds, settings))


def _chunk(seeds: Sequence[int], settings: str) -> Iterator[Validation]:
    config = from_toml(settings)
    for seed in seeds:
        go_on()
        yield validate_seed(seed, config)


def validate_seed(seed: int, config: RunConfig) -> Validation:
    """Run one seed, and say what the specification found."""
    return validated(run(seed, config), seed)


def validated(outcome: Outcome, seed: int | None) -> Validation:
    """What the specification found in a run."""
    return Validation(
        seed,
        outcome.digest,
        outcome.verdict.value,
        outcome.reason,
        outcome.checked,
        outcome.forbidden,
    )
