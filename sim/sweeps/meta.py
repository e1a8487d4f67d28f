"""The meta-test: does one seed give one history, in every process, on every Python?

Each seed is run in this process and again in fresh ones, which differ in everything that must not
matter: the hash seed, the layout of the heap, how many seeds were run before, the interpreter.
Digests are compared. If they differ, both histories are fetched, and the first event that differs
is named. They are fetched from processes that repeat all that ran before, because what leaks from
one run to the next shows only after the runs that it leaks from.

A child is this module: `python -m ottla.sim.sweeps.meta FIRST COUNT SETTINGS SEEDS` prints one
digest a line. For each of SEEDS, which may be empty, it also prints each event before the digest,
one a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TypeAlias

from ottla.sim.machine.pythons import Child, said
from ottla.sim.run import Outcome, run
from ottla.sim.settings.settings_file import from_toml

_PERTURB = 100_000
"""How many objects fill a perturbed heap."""
_EVENT = "> "
"""Marks the line of an event; the line of a digest has no mark."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the same seeds."""

    name: str
    interpreter: str
    hash_seed: str
    warm: int = 0
    """How many seeds are run before, without results."""
    perturb: bool = False


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two variants that disagree about a seed."""

    seed: int
    left: str
    right: str
    text: str
    """The first differing event."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which seeds, under which settings (TOML)."""

    first: int
    count: int
    settings: str = ""


Progress: TypeAlias = Callable[[], None]
ABLE = "import ottla.sim.sweeps.meta"
"""What an interpreter with all libraries can run."""
LIBRARIES = ("crc32c", "msgpack", "sortedcontainers")
"""The libraries that it needs for that."""


def variants(interpreters: Sequence[str], warm: int = 1_000) -> list[Variant]:
    """All variants: every interpreter, three hash seeds, a perturbed heap, a process that has run
    `warm` other seeds before."""
    here = sys.executable
    found = [
        Variant("hash seed 0", here, "0"),
        Variant("hash seed 4711", here, "4711", perturb=True),
        Variant("random hash seed, warm", here, "random", warm=warm),
    ]
    found.extend(Variant(each, each, "random", perturb=True) for each in interpreters)
    return found


def check(
    plan: Plan, others: Sequence[Variant], *, jobs: int = 1, progress: Progress = lambda: None
) -> Iterator[tuple[Variant, list[Mismatch]]]:
    """Each variant with the seeds about which it disagrees with the first one, in order. `jobs` of
    them run at a time; `progress` is called for each digest, from any thread.

    Raises `InterpreterError` for an interpreter that does not run.
    """
    for each in others:
        if each.interpreter != sys.executable:  # find a broken one before hours of work
            list(_child(replace(each, warm=0), replace(plan, count=0)))
    with _asking(jobs) as (pool, children):
        running = [pool.submit(digests, each, plan, progress, children) for each in others]
        expected = running[0].result()
        for variant, found in zip(others, running, strict=True):
            pairs = enumerate(zip_longest(expected, found.result()), plan.first)
            differ = [seed for seed, (a, b) in pairs if a != b]
            told = _partings(others[0], variant, plan, differ)
            mismatches = [
                Mismatch(seed, others[0].name, variant.name, text)
                for seed, text in zip(differ, told, strict=True)
            ]
            yield variant, mismatches


@contextmanager
def _asking(jobs: int) -> Iterator[tuple[ThreadPoolExecutor, list[Child]]]:
    """Threads that ask, and the children that they ask; both end with the block."""
    pool, children = ThreadPoolExecutor(jobs), list[Child]()
    try:
        yield pool, children
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for each in children:
            each.kill()
        pool.shutdown()


def digests(
    variant: Variant, plan: Plan, progress: Progress, children: list[Child] | None = None
) -> list[str]:
    """The digest of each seed by a variant; its process is added to `children`.

    Raises `InterpreterError`.
    """
    found = []
    for line in _child(variant, plan, children=children):
        found.append(line)
        progress()
    return found


def _partings(left: Variant, right: Variant, plan: Plan, seeds: Sequence[int]) -> Iterator[str]:
    """Where the two histories of each of these seeds differ first, after repeating all that ran
    before."""
    if not seeds:
        return
    again = replace(plan, count=seeds[-1] + 1 - plan.first)
    sides = [_histories(_child(each, again, seeds)) for each in (left, right)]
    for a, b in zip(*sides, strict=True):
        yield _parting(a, b)


def _histories(lines: Iterator[str]) -> Iterator[list[str]]:
    """The events of each seed that has any, followed by its digest."""
    history: list[str] = []
    for line in lines:
        if line.startswith(_EVENT):
            history.append(line.removeprefix(_EVENT))
        elif history:
            yield [*history, line]
            history = []


def _parting(left: Sequence[str], right: Sequence[str]) -> str:
    """The first event that differs between two histories, which end with their digests."""
    for eid, (a, b) in enumerate(zip_longest(left[:-1], right[:-1])):
        if a != b:
            return f"event {eid}: {a or 'ended'} | {b or 'ended'}"
    if left[-1] != right[-1]:
        return "no event differs, but the order of those behind them"
    return "not reproduced: run again, with all before it, both have one history"


def _child(
    variant: Variant, plan: Plan, told: Sequence[int] = (), children: list[Child] | None = None
) -> Iterator[str]:
    """The output of a process for the seeds of a plan, line by line; for those in `told` with all
    events."""
    environment = {
        "PYTHONHASHSEED": variant.hash_seed,
        "OTTLA_META": json.dumps([variant.warm, variant.perturb]),
    }
    ask = [str(plan.first), str(plan.count), plan.settings, " ".join(map(str, told))]
    command = ["-m", "ottla.sim.sweeps.meta", *ask]
    return said(variant.interpreter, command, environment, children)


def main(arguments: Sequence[str]) -> None:
    """The child: run seeds and print what is asked for."""
    first, count, settings, seeds = arguments
    config, told = from_toml(settings), frozenset(map(int, seeds.split()))
    warm, perturb = json.loads(os.environ.get("OTTLA_META", "[0, false]"))
    about = [object() for _ in range(_PERTURB)][::3] if perturb else []
    for seed in range(warm):
        run(1_000_000 + seed, config)
    for seed in range(int(first), int(first) + int(count)):
        _print(run(seed, config), told=seed in told)
    del about


def _print(outcome: Outcome, *, told: bool) -> None:
    for row in outcome.rows if told else ():
        sys.stdout.write(f"{_EVENT}{row.told()}\n")
    sys.stdout.write(f"{outcome.digest}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
