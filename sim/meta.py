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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

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


def variants(interpreters: Sequence[str]) -> list[Variant]:
    """All ways to run them: every interpreter, two hash seeds, a warm process, a perturbed heap."""
    here = sys.executable
    found = [
        Variant("hash seed 0", here, "0"),
        Variant("hash seed 4711", here, "4711", perturb=True),
        Variant("random hash seed, warm", here, "random", warm=20),
    ]
    found.extend(Variant(each, each, "random", perturb=True) for each in interpreters)
    return found


def check(
    first: int, count: int, settings: str, others: Sequence[Variant]
) -> Iterator[tuple[Variant, list[Mismatch]]]:
    """Each variant, as it is done, with the seeds about which it disagrees with the first one."""
    expected = digests(others[0], first, count, settings)
    for variant in others:
        found = expected if variant is others[0] else digests(variant, first, count, settings)
        mismatches = [
            Mismatch(
                seed, others[0].name, variant.name, _parting(others[0], variant, seed, settings)
            )
            for seed, (a, b) in enumerate(zip_longest(expected, found), first)
            if a != b
        ]
        yield variant, mismatches


def digests(variant: Variant, first: int, count: int, settings: str) -> list[str]:
    """What a variant says of each seed. Raises `subprocess.CalledProcessError`."""
    return _child(variant, ["digests", str(first), str(count)], settings)


def _parting(left: Variant, right: Variant, seed: int, settings: str) -> str:
    """Where the two histories of a seed part ways."""
    ask = ["rows", str(seed), "1"]
    rows = zip_longest(_child(left, ask, settings), _child(right, ask, settings))
    for eid, (a, b) in enumerate(rows):
        if a != b:
            return f"event {eid}: {a or 'ended'} | {b or 'ended'}"
    return "no event differs, but the order of those behind them"


def _child(variant: Variant, ask: list[str], settings: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": variant.hash_seed}
    environment["OTTLA_META"] = json.dumps([variant.warm, variant.perturb])
    command = [variant.interpreter, "-m", "ottla.sim.meta", *ask, settings]
    done = subprocess.run(  # noqa: S603 - our own module
        command, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


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
