"""The kill matrix in words: a line a mutant, its figure over all, and the page that keeps both.

`docs/reference/mutants.md` is what `ottla sim mutants --page` wrote. Hours of a core stand in it,
so it is made in parts: a page that is there keeps the rows of mutants that were not asked for.
Figures come from those runs, so a test holds the page's shape and the scenarios in it, not its
figures.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil, inf
from statistics import median

from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.mutants.matrix import Kills
from ottla.sim.scenarios.page import files, opening_of

MEDIAN_TARGET, P95_TARGET = 50, 2_000
"""Seeds to the first kill, over all mutants (facts/simulation.md 6, G3)."""
_HEAD = """\
# Mutants

A mutant is the broker, its disk or a client with one safety mechanism switched off, which can be
done in the simulator alone (`sim/mutants/catalogue.py`). Each must be noticed twice: in a scenario
that was written for it, and by chance, in a sweep. *Seeds to kill* is how many seeds it takes on
average until one fails, estimated from the share that did; behind it the ends of its 95 % interval
(Wilson), and which invariants noticed, in how many seeds. How the checkers themselves are tested is
in [invariants](invariants.md).

Written by `ottla sim mutants ID... --seeds N --first SEED --page docs/reference/mutants.md`; a row
says from which seed on it was swept, under profile `reference-strict`.

"""
_COLUMNS = """
| id | without | killed in | first seed | seeds that fail | seeds to kill | noticed by |
|---|---|---|---|---|---|---|
"""
_ROW = re.compile(
    r"\| sim-(M\d+) \|[^|]*\|[^|]*\| (\d+) \| (\d+) of (\d+) \|[^|]*\| ([^|]*) \|", re.ASCII
)
_NOBODY = "nobody"


def scenarios() -> dict[str, list[str]]:
    """The scenarios that catch each mutant, by its id."""
    found: dict[str, list[str]] = {}
    for path in files():
        told = opening_of(path.read_text(encoding="utf-8"))
        for mutant in told.mutants:
            found.setdefault(mutant, []).append(told.id)
    return found


def span(kills: Kills) -> str:
    """Seeds to kill, with the ends of the interval."""
    _, low, high = kills.share
    if kills.seeds_to_kill is None:
        return f"more than {1 / high:.0f}"
    return f"{kills.seeds_to_kill:.1f} ({1 / high:.1f} to {1 / low:.1f})"


def noticed(kills: Kills) -> str:
    """Invariants with the number of seeds in which they noticed."""
    return ", ".join(f"{name} {count}" for name, count in kills.invariants) or _NOBODY


def over_all(found: Sequence[Kills]) -> str:
    """Share killed, median and 95th percentile over mutants; who was not killed counts as never."""
    seeds = sorted(inf if each.seeds_to_kill is None else each.seeds_to_kill for each in found)
    killed = sum(each < inf for each in seeds)
    late = seeds[ceil(0.95 * len(seeds)) - 1]
    return (
        f"{killed} of {len(seeds)} mutants killed; seeds to kill over mutants: median "
        f"{median(seeds):.1f} (at most {MEDIAN_TARGET} wanted), 95th percentile {late:.1f} "
        f"(at most {P95_TARGET} wanted)"
    )


def page(found: Sequence[Kills]) -> str:
    """The whole page, in Markdown."""
    by = scenarios()
    rows = [
        f"| sim-{each.row.id} | {each.row.lacks} | {', '.join(by.get(each.row.id, ['none']))} "
        f"| {each.start} | {each.killed} of {each.seeds} | {span(each)} | {noticed(each)} |\n"
        for each in found
    ]
    return "".join((_HEAD, f"{over_all(found)}.\n", _COLUMNS, *rows))


def kept(text: str) -> list[Kills]:
    """What a page was written from, less mutants that are no longer in the catalogue."""
    found = []
    for id_, start, killed, seeds, invariants in _ROW.findall(text):
        if id_ in BY_ID:
            told = [] if invariants == _NOBODY else invariants.split(", ")
            pairs = [
                (name, int(count)) for name, _, count in (each.rpartition(" ") for each in told)
            ]
            found.append(Kills(BY_ID[id_], int(start), int(seeds), int(killed), tuple(pairs)))
    return found


def merged(found: Sequence[Kills], text: str) -> list[Kills]:
    """What was found, with the rows of a page for mutants that were not asked for, by id."""
    fresh = {each.row.id for each in found}
    old = [each for each in kept(text) if each.row.id not in fresh]
    return sorted([*old, *found], key=lambda each: each.row.id)
