"""Blind kills in words, and their part of `docs/reference/mutants.md`: the section *Blind*.

It follows the kill matrix and is written by `ottla sim mutants --blind --page`, also in parts: rows
of mutants that were not asked for stay. Nothing else on the page changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil, floor
from statistics import median

from ottla.sim.sweeps.blind import BlindKills, Target

HEADING = "## Blind"
_HEAD = f"""\
{HEADING}

What a sweep notices that is told nothing. `ottla sim mutants --blind` sweeps each mutant, those
of the catalogue and planted ones (`sim/mutants/planted.toml`), with all left to the swarm, the
profile too. It stops at the first seed that fails and that passes without the mutant. *First kill*
is the number of that seed, counted from 1. It is a single draw of a geometric distribution, so it
shows that a mutant is noticed, and hardly how often. Where a sweep went to the end
(`--to-the-end`), the seeds that fail stand behind it, with the seeds to kill and the ends of their
95 % interval (Wilson). Beside invariants, *broke* notices: an exception ended the run.

"""
_COLUMNS = """\
| id | room | breaks | first seed | first kill | noticed by |
|---|---|---|---|---|---|
"""
_ROW = re.compile(
    r"\| (?P<id>\S+) \|[^|]*\|[^|]*\| (?P<first>\d{1,12}) \| (?P<when>[^|]+) \| (?P<who>[^|]+) \|",
    re.ASCII,
)
_SURVIVED = re.compile(r"survived (\d{1,12})", re.ASCII)
_DIED = re.compile(r"(\d{1,12})(?:; (\d{1,12}) of (\d{1,12}) fail, .+)?", re.ASCII)
_NOBODY = "nobody"


class NotBlindError(Exception):
    """The text is no section of blind kills; the message names the first bad row."""


def split(text: str) -> tuple[str, str]:
    """A page in two parts: the kill matrix, and the section, which may be empty."""
    told, heading, rest = text.partition(f"\n{HEADING}\n")
    return told, heading[1:] + rest


def noticed(found: BlindKills) -> str:
    """What noticed it; in how many seeds, if the sweep went to the end."""
    if not found.whole:
        return ", ".join(name for name, _ in found.noticed) or _NOBODY
    return ", ".join(f"{name} {count}" for name, count in found.noticed) or _NOBODY


def when(found: BlindKills) -> str:
    """The number of the seed that killed it first, and how often it was killed."""
    if found.number is None:
        return f"survived {found.seeds}"
    if not found.whole:
        return f"{found.number}"
    _, low, high = found.share
    return (
        f"{found.number}; {found.killed} of {found.seeds} fail, {found.seeds / found.killed:.1f} "
        f"({1 / high:.1f} to {1 / low:.1f}) seeds to kill"
    )


def over_all(found: Sequence[BlindKills], targets: Mapping[str, Target]) -> str:
    """How many mutants died, of those that can, and when."""
    numbers = sorted(each.number for each in found if each.number is not None)
    alive = [each for each in found if each.number is None]
    excused = sum(bool(targets[each.id].excuse) for each in alive)
    told = f"{len(numbers)} of {len(found)} mutants died"
    if excused:
        told += f"; {excused} that survived are excused"
    if numbers:
        late = numbers[ceil(0.95 * len(numbers)) - 1]
        told += f"; first kills of those: median {floor(median(numbers))}, 95 % by {late}"
    return f"{told}."


def section(found: Sequence[BlindKills], targets: Mapping[str, Target]) -> str:
    """The whole section, in Markdown."""
    rows = [
        f"| {_name(each.id)} | {targets[each.id].room} | {_cell(targets[each.id].breaks)} "
        f"| {each.first} | {when(each)} | {noticed(each)} |\n"
        for each in found
    ]
    alive = [targets[each.id] for each in found if each.number is None]
    shown = "".join(f"* {_name(each.id)}: {_why(each)}\n" for each in alive)
    told = f"\nWho survived, and what would show it:\n\n{shown}" if shown else ""
    return "".join((_HEAD, over_all(found, targets), "\n\n", _COLUMNS, *rows, told))


def kept(text: str) -> list[BlindKills]:
    """The results from which a section was written. Raises `NotBlindError`."""
    found = []
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    for line in rows:
        row = _ROW.fullmatch(line)
        kills = None if row is None else _read(row)
        if kills is None:
            raise NotBlindError(f"this row cannot be read: {line}")
        found.append(kills)
    return found


def merged(
    found: Sequence[BlindKills], text: str, targets: Mapping[str, Target]
) -> list[BlindKills]:
    """The results, and the rows of a section for mutants that were not swept now and still exist,
    in the order of `targets`. Raises `NotBlindError`."""
    fresh = {each.id: each for each in found}
    both = {each.id: each for each in kept(text)} | fresh
    return [both[each] for each in targets if each in both]


def _read(row: re.Match[str]) -> BlindKills | None:
    id_, first = row["id"].removeprefix("sim-"), int(row["first"])
    alive, died = _SURVIVED.fullmatch(row["when"]), _DIED.fullmatch(row["when"])
    if alive:
        return BlindKills(id_, first, int(alive[1]), 0, (), None, whole=False)
    if died is None:
        return None
    number, whole = int(died[1]), died[2] is not None
    killed, seeds = (int(died[2]), int(died[3])) if whole else (1, number)
    names = [_count(each, whole) for each in row["who"].split(", ")]
    return BlindKills(id_, first, seeds, killed, tuple(names), first + number - 1, whole)


def _count(text: str, whole: bool) -> tuple[str, int]:
    name, _, count = text.rpartition(" ") if whole and text[-1].isdigit() else (text, "", "1")
    return name, int(count)


def _name(id_: str) -> str:
    return f"sim-{id_}" if id_.startswith("M") else id_


def _cell(text: str) -> str:
    return text.replace("|", "\\|") if "|" in text else text


def _why(target: Target) -> str:
    return f"excused: {target.excuse}" if target.excuse else target.shows
