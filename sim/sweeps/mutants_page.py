"""The kill matrix in words: a line for each mutant, the figure over all, and the page with both.

`docs/reference/mutants.md` is written by `ottla sim mutants --page`. It has hours of CPU time in
it, so it is made in parts: an existing page keeps the rows of mutants that were not swept now. A
test checks the page's shape and the scenarios in it, but not its figures, because they come from
those runs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from math import ceil, floor, inf
from statistics import median
from textwrap import fill

from ottla.sim.mutants.catalogue import BY_ID, Row
from ottla.sim.scenarios.files import files, opening_of
from ottla.sim.sweeps.kills import Kills

MEDIAN_TARGET, P95_TARGET = 50, 2_000
"""Seeds to the first kill, over all mutants (SIM-GOALS)."""
_HEAD = """\
# Mutants

A mutant is the broker, its disk or a client with one safety mechanism switched off. Only the
simulator can do that (`sim/mutants/catalogue.py`). Each mutant must be noticed twice: in a scenario
that was written for it, and by chance, in a sweep. *Seeds to kill* is how many seeds a sweep needs
on average until one fails. It is estimated from the share of seeds that failed, and has a 95 %
interval (Wilson). The last column says which invariants noticed the mutant, and in how many seeds.
[Invariants](invariants.md) says how the checkers themselves are tested.

A mechanism is only missed if a run uses it: a client with one request in flight never needs the
fifth batch of a window. So each mutant is swept under settings of its own: faults that need the
mechanism, sometimes a program that was written for it, and clients and limits to match. The swarm
draws all other settings. So the figures say how soon a mechanism is missed if one looks in the
right place. A sweep with no other setting than the mutant needs more seeds, and does not notice
some: M15 showed in none of 60 seeds (with 95 % confidence, it shows in at most 1 in 20).
[Below](#where-each-is-looked-for) are the settings of each mutant, the reason for them, and the
commands that show it again.

A follower has a general way to accept entries, and a short one for most appends
(`raft/following.py`, `follow`). The switches are in the general way, so no mutant takes the short
one. `tests/raft/test_follow.py` and `tests/broker/driver/test_fast_append.py` check that both ways
have the same result.

Written by `ottla sim mutants ID... --seeds N --first SEED --page docs/reference/mutants.md`. A row
names its first seed; `ottla sim mutants M15 --seeds 500 --first 1000000` sweeps one mutant again,
under the same settings.

"""
_COLUMNS = """\
| id | without | killed in | first seed | seeds that fail | seeds to kill | noticed by |
|---|---|---|---|---|---|---|
"""
_WHERE = """
## Where each is looked for

The profile is `reference-strict`, unless a command names another one. A sweep runs the seeds one by
one, and says for each that fails what was noticed. The last column runs only the first of these. A
seed is the same run only with the code that wrote the row, because later code may draw other
settings.

| id | why these settings | all seeds of the row | the first that fails |
|---|---|---|---|
"""
_ROW = re.compile(
    r"\| sim-(M\d+) \|[^|]*\|[^|]*\| (\d{1,12}) \| (\d{1,12}) of (\d{1,12}) \|[^|]*"
    r"\| (nobody|[^|,]+ \d{1,12}(?:, [^|,]+ \d{1,12})*) \|",
    re.ASCII,
)
_FAILING = re.compile(r"\| sim-(M\d+) \|.*`ottla sim run --seed (\d{1,12}) [^|]*\|", re.ASCII)
_WITHOUT_SEED = re.compile(r"\| sim-M\d+ \|.*\| (none did|was not kept) \|", re.ASCII)
_OWN = "sim-I00"
_NOBODY = "nobody"
_WIDTH = 120
"""Columns of a line of documentation."""
_NOT_KEPT = "was not kept"


class NotAPageError(Exception):
    """The text is no page of the matrix; the message says why."""


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
        return f"more than {floor(1 / high)}"
    return f"{kills.seeds_to_kill:.1f} ({1 / high:.1f} to {1 / low:.1f})"


def noticed(kills: Kills) -> str:
    """Invariants, with the number of seeds in which they noticed."""
    return ", ".join(f"{name} {count}" for name, count in kills.invariants) or _NOBODY


def swept_by(kills: Kills) -> str:
    """The command that sweeps the same seeds under the same settings."""
    return _command(
        "sweep", "--seeds", str(kills.seeds), "--first", str(kills.start), row=kills.row
    )


def failing_by(kills: Kills) -> str | None:
    """The command that runs the first seed that failed; None: none did, or it was not kept."""
    if kills.failing is None:
        return None
    return _command("run", "--seed", str(kills.failing), row=kills.row)


def _command(*words: str, row: Row) -> str:
    given = [f"mutants={row.id}"]
    for name, value in row.settings.items():
        given.append(f"{name}={str(value).lower() if isinstance(value, bool) else value}")
    sets = [word for each in given for word in ("--set", each)]
    return shlex.join(["ottla", "sim", *words, *sets])


def over_all(found: Sequence[Kills]) -> str:
    """Share killed, median and 95th percentile over mutants; a mutant that was not killed counts as
    infinite."""
    seeds = sorted(inf if each.seeds_to_kill is None else each.seeds_to_kill for each in found)
    killed = sum(each < inf for each in seeds)
    late = seeds[ceil(0.95 * len(seeds)) - 1]
    return (
        f"{killed} of {len(seeds)} mutants killed; seeds to kill over mutants: median "
        f"{median(seeds):.1f} (at most {MEDIAN_TARGET} wanted), 95th percentile {late:.1f} "
        f"(at most {P95_TARGET} wanted)"
    )


def by_themselves(found: Sequence[Kills]) -> str:
    """In how many kills a node or a client broke a rule of its own, in all and by mutant."""
    own = [(each, dict(each.invariants).get(_OWN, 0)) for each in found]
    told = [f"sim-{each.row.id} {count} of {each.killed}" for each, count in own if count]
    by_mutant = f": {', '.join(told)}" if told else ""
    count, killed = sum(count for _, count in own), sum(each.killed for each in found)
    return (
        f"{_OWN} is no invariant that looks on, but an assertion of a node's or a client's own. It "
        f"was among what noticed in {count} of {killed} kills{by_mutant}"
    )


def _wrapped(text: str) -> str:
    return fill(f"{text}.", _WIDTH, break_on_hyphens=False)


def page(found: Sequence[Kills]) -> str:
    """The whole page, in Markdown."""
    by = scenarios()
    rows = [
        f"| sim-{each.row.id} | {each.row.lacks} | {', '.join(by.get(each.row.id, ['none']))} "
        f"| {each.start} | {each.killed} of {each.seeds} | {span(each)} | {noticed(each)} |\n"
        for each in found
    ]
    return "".join(
        (
            _HEAD,
            *(f"{_wrapped(text)}\n\n" for text in (over_all(found), by_themselves(found))),
            _COLUMNS,
            *rows,
            _WHERE,
            *map(_looked_for, found),
        )
    )


def _looked_for(kills: Kills) -> str:
    failing = _NOT_KEPT if kills.killed else "none did"
    if kills.failing is not None:
        failing = f"`{failing_by(kills)}`"
    return (
        f"| sim-{kills.row.id} | {kills.row.conditions.why} | `{swept_by(kills)}` | {failing} |\n"
    )


def check(text: str) -> None:
    """Raises `NotAPageError` if `kept` cannot read every row; an empty text is allowed."""
    if not text.strip():
        return
    figures, _, where = text.partition(_WHERE.partition("\n\n")[0])
    if not text.startswith(_HEAD.partition("\n")[0] + "\n") or _COLUMNS.strip() not in figures:
        raise NotAPageError("it is no page that `ottla sim mutants` wrote")
    for line in _rows(figures):
        found = _ROW.fullmatch(line)
        if found is None or not 0 <= int(found[3]) <= int(found[4]) or not int(found[4]):
            raise NotAPageError(f"this row cannot be read: {line}")
    for line in _rows(where):
        if not _FAILING.fullmatch(line) and not _WITHOUT_SEED.fullmatch(line):
            raise NotAPageError(f"this row cannot be read: {line}")


def _rows(text: str) -> list[str]:
    """The lines of a table below its head."""
    return [line for line in text.splitlines() if line.startswith("|")][2:]


def kept(text: str) -> list[Kills]:
    """The results from which a page was written, without mutants that are no longer in the
    catalogue."""
    found = []
    failing = {id_: int(seed) for id_, seed in _FAILING.findall(text)}
    for id_, start, killed, seeds, invariants in _ROW.findall(text):
        if id_ in BY_ID:
            told = [] if invariants == _NOBODY else invariants.split(", ")
            pairs = [
                (name, int(count)) for name, _, count in (each.rpartition(" ") for each in told)
            ]
            found.append(
                Kills(
                    BY_ID[id_],
                    int(start),
                    int(seeds),
                    int(killed),
                    tuple(pairs),
                    failing.get(id_),
                )
            )
    return found


def merged(found: Sequence[Kills], text: str) -> list[Kills]:
    """The results, and the rows of a page for mutants that were not swept now, by id."""
    fresh = {each.row.id for each in found}
    old = [each for each in kept(text) if each.row.id not in fresh]
    return sorted([*old, *found], key=lambda each: each.row.id)
