"""Promises of the documents: who would notice one broken, and what was broken to see that.

`tests/docs/promises.toml` is the table, `docs/reference/promises.md` what this writes from it. Each
row quotes a page and has one or more pairs of a checker and a mutant:

| checker | mutant |
|---|---|
| an invariant, `sim-I09` | one of the catalogue, `sim-M06`, which the invariant noticed |
| a test, `tests/...::test_it` | a planted one, `P38`, or one made for a test, `T01` |

Mutants made for tests are in `tests/docs/promises_mutants.toml`, written like planted ones
(`ottla.sim.mutants.planted`). Sweeps do not run them: what they break is seen in no history.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from ottla.sim.invariants.registry import INVARIANTS
from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.mutants.planted import Planted, read, shipped

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "docs" / "promises.toml"
SMALL = ROOT / "tests" / "docs" / "promises_mutants.toml"
PAGE = ROOT / "docs" / "reference" / "promises.md"

_HEAD = """\
# Promises

Written from `tests/docs/promises.toml` by `tests/docs/test_promises.py`; do not edit.

What the pages promise, each in its own words. The question is who would notice if a promise were
broken: the *checker*. The answer is not guessed: beside each checker stands a *mutant*, code that
breaks the promise, and the checker has noticed it.

* A checker `sim-I09` is an [invariant](invariants.md), a mutant `sim-M06` one of the
  [catalogue](mutants.md). A row of that page, or a [scenario](scenarios.md), shows that the
  invariant notices it; a test compares this table with them.
* What no simulated run can show has an ordinary test as its checker. Its mutant is a planted one
  (`P38`, `sim/mutants/planted.toml`), or was made for it (`T01`,
  `tests/docs/promises_mutants.toml`). A slow test runs each such test against the broken code, and
  it must fail.

These invariants have no row: sim-I15, sim-I17, sim-I18 and sim-I21. Planted mutants break them, or
another invariant ends the run first; labelled histories try them. sim-I32 holds of the simulator's
own clients.

"""


class Pair(NamedTuple):
    """A checker, and a mutant that it notices."""

    checker: str
    mutant: str

    @property
    def is_test(self) -> bool:
        """Whether the checker is an ordinary test."""
        return self.checker.startswith("tests/")


class Promise(NamedTuple):
    """One row."""

    about: str
    page: str
    """The document, from the root of the repository."""
    words: str
    """They stand there so."""
    pairs: tuple[Pair, ...]


def promises() -> tuple[Promise, ...]:
    """All rows, in the order of the file."""
    found = tomllib.loads(TABLE.read_text(encoding="utf-8"))["promise"]
    return tuple(
        Promise(
            row["about"], row["page"], row["words"], tuple(Pair(*each) for each in row["noticed"])
        )
        for row in found
    )


def planted() -> Mapping[str, Planted]:
    """Planted mutants and those made for tests, by id."""
    made = read(SMALL.read_text(encoding="utf-8"))
    return {each.id: each for each in (*shipped(), *made)}


def breaks_of(mutant: str, table: Mapping[str, Planted]) -> str:
    """What a mutant breaks or lacks, in words. Raises `KeyError` if there is no such mutant."""
    if mutant.startswith("sim-"):
        return f"without {BY_ID[mutant.removeprefix('sim-')].lacks}"
    return table[mutant].breaks


def checks_of(checker: str) -> str:
    """What an invariant is about, in words. Raises `StopIteration` if there is none."""
    return next(each.name for each in INVARIANTS if each.id == checker)


def squeezed(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())


def page(rows: Iterable[Promise]) -> str:
    """The whole page, in Markdown, with a newline at the end."""
    table, parts = planted(), [_HEAD]
    found = tuple(rows)
    pairs = sum(len(each.pairs) for each in found)
    parts.append(f"{len(found)} promises, {pairs} pairs of a checker and a mutant.\n")
    for about, group in groupby(found, key=lambda each: each.about):
        parts.append(f"\n## {about}\n\n| promise | checker | mutant |\n|---|---|---|\n")
        for each in group:
            promise = f"[{each.words}]({_link(each.page)})".replace("|", "\\|")
            for pair in each.pairs:
                checker = (
                    f"`{pair.checker}`"
                    if pair.is_test
                    else f"{pair.checker}, {checks_of(pair.checker)}"
                )
                mutant = f"{pair.mutant}: {breaks_of(pair.mutant, table)}"
                parts.append(f"| {promise} | {checker} | {mutant} |\n")
                promise = "the same"
    return "".join(parts)


def _link(path: str) -> str:
    if path.startswith("docs/reference/"):
        return path.removeprefix("docs/reference/")
    return f"../{path.removeprefix('docs/')}" if path.startswith("docs/") else f"../../{path}"
