"""Prints what `ottla sim coverage` counts.

That is overlaps, durable steps, late messages, and the functions that no seed entered. A count of
zero is marked: `-` if there is a reason (`sim/coverage/excused.py`), otherwise NEVER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.commands.sim.telling import say

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping

    from ottla.sim.coverage.cover import Count, Cover
    from ottla.sim.coverage.functions import Function

_NEVER, _EXCUSED = "NEVER", "-"


def say_counts(found: Cover) -> None:
    """Print the tables."""
    _say_overlaps(found)
    _say_steps(found)
    _say_deliveries(found)
    if found.functions:
        _say_functions(found)


def _cell(count: Count, *, excused: bool) -> str:
    if count.times:
        return f"{count.times}/{count.seeds}"
    return _EXCUSED if excused else _NEVER


def _say_overlaps(found: Cover) -> None:
    from ottla.sim.coverage.excused import OVERLAPS_EXCUSED
    from ottla.sim.coverage.overlaps import ACTIVITIES, GROUP, REPLICA

    say("overlaps, times/seeds: above the diagonal on one replica, below it in one group;")
    say("on the diagonal, how often it was under way at all")
    say(" " * 10 + "".join(f"{each:>12}" for each in ACTIVITIES))
    for down, row in enumerate(ACTIVITIES):
        cells = []
        for right, column in enumerate(ACTIVITIES):
            overlap = (row, column, REPLICA) if down < right else (column, row, GROUP)
            cells.append(_cell(found.overlaps[overlap], excused=overlap in OVERLAPS_EXCUSED))
        say(f"{row:<10}" + "".join(f"{each:>12}" for each in cells))
    _say_zeros({f"{a} and {b} ({where})": each for (a, b, where), each in _bare(found)[0].items()})


def _say_steps(found: Cover) -> None:
    from ottla.sim.coverage.cover import Count
    from ottla.sim.coverage.excused import STEPS_EXCUSED
    from ottla.sim.coverage.steps import FAULTS, MET, PASSED, STEPS

    say("durable steps, times/seeds that a fault met a replica there")
    say(f"{'':<32}" + "".join(f"{each:>12}" for each in (*FAULTS, PASSED)))
    for step in STEPS:
        cells = [
            _cell(found.steps.get((step, each), Count()), excused=(step, each) in STEPS_EXCUSED)
            if (step, each) in MET or each == PASSED
            else ""
            for each in (*FAULTS, PASSED)
        ]
        say(f"{step:<32}" + "".join(f"{each:>12}" for each in cells))
    _say_zeros({f"{fault} at {step}": each for (step, fault), each in _bare(found)[1].items()})


def _say_deliveries(found: Cover) -> None:
    from ottla.sim.coverage.deliveries import LATENESS, TYPES
    from ottla.sim.coverage.excused import DELIVERIES_EXCUSED

    say("messages that arrived after leaders had changed, times/seeds")
    say(f"{'':<22}" + "".join(f"{each:>17}" for each in LATENESS))
    for name in TYPES:
        cells = [
            _cell(found.deliveries[name, each], excused=(name, each) in DELIVERIES_EXCUSED)
            for each in LATENESS
        ]
        say(f"{name:<22}" + "".join(f"{each:>17}" for each in cells))
    _say_zeros({f"{name} {late}": each for (name, late), each in _bare(found)[2].items()})


def _bare(found: Cover) -> tuple[dict[Any, str], dict[Any, str], dict[Any, str]]:
    """What was never reached, each with its reason; empty if there is none."""
    from ottla.sim.coverage.excused import DELIVERIES_EXCUSED, OVERLAPS_EXCUSED, STEPS_EXCUSED

    return (
        _zeros(found.overlaps, OVERLAPS_EXCUSED),
        _zeros(found.steps, STEPS_EXCUSED),
        _zeros(found.deliveries, DELIVERIES_EXCUSED),
    )


def _zeros(counts: Mapping[Any, Count], reasons: Mapping[Any, str]) -> dict[Any, str]:
    return {what: reasons.get(what, "") for what, count in counts.items() if not count.times}


def _say_zeros(zeros: Mapping[str, str]) -> None:
    for what, reason in zeros.items():
        if reason:
            say(f"- {what}: {reason}")


def _say_functions(found: Cover) -> None:
    from ottla.sim.coverage.excused_functions import excuse_of

    bare = unentered(found)
    excused = [each for each in bare if excuse_of(each) is not None]
    say(
        f"{len(found.functions) - len(bare)} of {len(found.functions)} functions were entered, "
        f"{len(excused)} others are excused, {len(bare) - len(excused)} are not:"
    )
    for each in bare:
        if excuse_of(each) is None:
            say(f"  {each.file} {each.name}")


def unentered(found: Cover) -> list[Function]:
    """The functions that no seed entered."""
    return [each for each, tally in found.functions.items() if tally.first is None]


def in_json(found: Cover) -> dict[str, Any]:
    """All that was reached, for programs."""
    from ottla.sim.coverage.excused_functions import excuse_of

    counts: tuple[Mapping[Any, Count], ...] = (found.overlaps, found.steps, found.deliveries)
    named = ("overlaps", "steps", "messages")
    told: dict[str, Any] = {
        "seeds": len(found.growth),
        "states": found.growth[-1] if found.growth else 0,
        "scenarios": {name: each._asdict() for name, each in found.predicates.items()},
        "rules": {name: each._asdict() for name, each in found.rules.items()},
        "answers": {name: each._asdict() for name, each in found.answers.items()},
    }
    for name, table, zeros in zip(named, counts, _bare(found), strict=True):
        told[name] = _rows(table, zeros)
    if found.functions:
        bare = {each: excuse_of(each) for each in unentered(found)}
        excuses = [place for place in bare.values() if place is not None]
        told["functions"] = {
            "all": len(found.functions),
            "not_entered": [" ".join(each) for each, place in bare.items() if place is None],
            "excused": {place: excuses.count(place) for place in dict.fromkeys(excuses)},
        }
    return told


def _rows(
    table: Mapping[Any, Count], zeros: Mapping[Any, str]
) -> list[dict[str, Collection[Hashable] | Hashable]]:
    return [
        {"what": list(what), **count._asdict(), "excused": zeros.get(what) or None}
        for what, count in table.items()
    ]
