"""The kill matrix in words: a line a mutant, its figure over all, and the page that keeps both.

`docs/reference/mutants.md` is what `ottla sim mutants --page` wrote last; figures come from that
run, so a test holds the page's shape and the scenarios in it, not its figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf
from statistics import median

from ottla.sim.mutants.matrix import PROFILE, Kills
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

"""
_COLUMNS = """
| id | without | killed in | seeds that fail | seeds to kill | noticed by |
|---|---|---|---|---|---|
"""


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
    return ", ".join(f"{name} {count}" for name, count in kills.invariants) or "nobody"


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


def page(found: Sequence[Kills], command: str) -> str:
    """The whole page, in Markdown."""
    by = scenarios()
    rows = [
        f"| sim-{each.row.id} | {each.row.lacks} | {', '.join(by.get(each.row.id, ['none']))} "
        f"| {each.killed} of {each.seeds} | {span(each)} | {noticed(each)} |\n"
        for each in found
    ]
    said = f"Profile `{PROFILE}`, as `{command}` found it: {over_all(found)}.\n"
    return "".join((_HEAD, said, _COLUMNS, *rows))
