"""The meta-test: is one seed one history, in every process, on every Python?

Each seed is run in this process and again in fresh ones, in which everything is different that must
not matter: the hash seed, the layout of the heap, how many seeds were run before, the interpreter.
Digests are compared; where they differ, both histories are fetched and the first event that is not
the same is named.

A child is this very module: `python -m ottla.sim.meta FIRST COUNT SETTINGS` prints a digest a line,
or with `rows SEED` one event a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from subprocess import PIPE
from typing import TypeAlias

from ottla.sim.run import run
from ottla.sim.settings import RunConfig, from_toml

_PERTURB = 100_000
"""Objects that stand about in a perturbed heap."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the same seeds."""

    name: str
    interpreter: str
    hash_seed: str
    warm: int = 0
    """Seeds run beforehand, whose results nobody asks for."""
    perturb: bool = False


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two variants that do not agree about a seed."""

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


class MetaError(Exception):
    """An interpreter does not run what it was asked to; the text says which and why."""


Progress: TypeAlias = Callable[[], None]
Child: TypeAlias = "subprocess.Popen[str]"


def variants(interpreters: Sequence[str], warm: int = 1_000) -> list[Variant]:
    """All ways to run them: every interpreter, three hash seeds, a perturbed heap, a process that
    has run `warm` other seeds before."""
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
    """Each variant with the seeds about which it disagrees with the first one, in order; `jobs` of
    them run at a time, and `progress` is called for each digest, from any thread.

    Raises `MetaError` for an interpreter that does not run.
    """
    for each in others:
        if each.interpreter != sys.executable:  # one that cannot is found before the work of hours
            list(_child(replace(each, warm=0), "digests", replace(plan, count=0)))
    with _asking(jobs) as (pool, children):
        running = [pool.submit(digests, each, plan, progress, children) for each in others]
        expected = running[0].result()
        for variant, found in zip(others, running, strict=True):
            mismatches = [
                Mismatch(
                    seed,
                    others[0].name,
                    variant.name,
                    _parting(others[0], variant, replace(plan, first=seed, count=1)),
                )
                for seed, (a, b) in enumerate(zip_longest(expected, found.result()), plan.first)
                if a != b
            ]
            yield variant, mismatches


@contextmanager
def _asking(jobs: int) -> Iterator[tuple[ThreadPoolExecutor, list[Child]]]:
    """Threads that ask, and the children that they ask: behind the block both are gone."""
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
    """What a variant says of each seed; its process is added to `children`. Raises `MetaError`."""
    found = []
    for line in _child(variant, "digests", plan, children):
        found.append(line)
        progress()
    return found


def _parting(left: Variant, right: Variant, plan: Plan) -> str:
    """Where the two histories of a seed part ways."""
    rows = zip_longest(_child(left, "rows", plan), _child(right, "rows", plan))
    for eid, (a, b) in enumerate(rows):
        if a != b:
            return f"event {eid}: {a or 'ended'} | {b or 'ended'}"
    return "no event differs, but the order of those behind them"


def _child(
    variant: Variant, what: str, plan: Plan, children: list[Child] | None = None
) -> Iterator[str]:
    environment = {
        **os.environ,
        "PYTHONHASHSEED": variant.hash_seed,
        # This very code, whatever the interpreter has installed.
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "OTTLA_META": json.dumps([variant.warm, variant.perturb]),
    }
    ask = [what, str(plan.first), str(plan.count), plan.settings]
    command = [variant.interpreter, "-m", "ottla.sim.meta", *ask]
    try:
        with subprocess.Popen(  # noqa: S603 - our own module
            command, env=environment, stdout=PIPE, stderr=PIPE, text=True
        ) as child:
            if children is not None:
                children.append(child)
            assert child.stdout is not None, "piped"
            assert child.stderr is not None, "piped"
            for line in child.stdout:
                yield line.rstrip("\n")
            said = child.stderr.read()
    except OSError as error:
        raise MetaError(f"{variant.interpreter}: {error.strerror}") from None
    if child.returncode:
        told = said.strip() or f"ended with status {child.returncode}"
        raise MetaError(f"{variant.interpreter}: {told.splitlines()[-1]}")


def main(arguments: Sequence[str]) -> None:
    """The child: run seeds, print what is asked for."""
    what, first, count, settings = arguments
    config = from_toml(settings)
    warm, perturb = json.loads(os.environ.get("OTTLA_META", "[0, false]"))
    about = [object() for _ in range(_PERTURB)][::3] if perturb else []
    for seed in range(warm):
        run(1_000_000 + seed, config)
    for seed in range(int(first), int(first) + int(count)):
        _print(what, seed, config)
    del about


def _print(what: str, seed: int, config: RunConfig) -> None:
    outcome = run(seed, config)
    if what == "digests":
        sys.stdout.write(f"{outcome.digest}\n")
        return
    for row in outcome.rows:
        sys.stdout.write(f"{row.told()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
