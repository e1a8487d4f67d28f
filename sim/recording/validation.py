"""Trace validation: runs are traced, and the specification checks each step (`specification/`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ottla.sim.chance.choices import Choices, Drawn, Replayed
from ottla.sim.machine.processes import go_on, processes
from ottla.sim.recording.record import NotTheSameError
from ottla.sim.recording.tracing import Tracer
from ottla.sim.run import Outcome, run_choices
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.specification.specification import Refusal, check

_CHUNK = 10


class Validation(NamedTuple):
    """What came out for one run."""

    seed: int | None
    """None: it was a tape."""
    digest: str
    verdict: str
    """What the invariants say."""
    reason: str
    events: int
    refused: int | None
    """Number of the first event that is not allowed; None if all are."""
    told: tuple[str, ...]
    """The event, what is wrong with it, the state before, what is allowed, and where it is in the
    history."""


def validate(seeds: Sequence[int], settings: str, jobs: int) -> Iterator[Validation]:
    """Run seeds and check their traces, in order. `settings` are TOML. Raises `ConfigError`."""
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
    """Run one seed and check its trace."""
    return _validated(seed, Drawn(seed), config, swarm=True)


def validate_again(outcome: Outcome, seed: int | None) -> Validation:
    """Repeat a run and check its trace. Raises `NotTheSameError` if the run differs."""
    found = _validated(seed, Replayed(outcome.tape), outcome.config, swarm=False)
    if found.digest != outcome.digest:
        raise NotTheSameError(f"digest {found.digest} when traced, {outcome.digest} before")
    return found


def _validated(seed: int | None, choices: Choices, config: RunConfig, *, swarm: bool) -> Validation:
    tracer = Tracer()
    outcome = run_choices(choices, config, swarm=swarm, watching=[tracer.watch])
    refusal = check(tracer.events, tracer.rules)
    return Validation(
        seed,
        outcome.digest,
        outcome.verdict.value,
        outcome.reason,
        len(tracer.events),
        None if refusal is None else refusal.number,
        () if refusal is None else _told(tracer, refusal),
    )


def _told(tracer: Tracer, refusal: Refusal) -> tuple[str, ...]:
    event, *lines = refusal.lines(tracer.name_of(refusal.event.group))
    return (event, *lines, tracer.place_of(refusal.number))
