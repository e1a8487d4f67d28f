"""What a sweep reached, as a page: `docs/reference/coverage.md` is what this writes.

The figures are those that `ottla sim coverage --json` printed into
`tests/sim/coverage/measured.json`, the reasons those of `sim/coverage/excused.py`.
`tests/sim/coverage/test_page.py` compares the two; with OTTLA_REWRITE=1 it writes the page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ottla.sim.coverage.deliveries import DELIVERIES, LATENESS, TYPES
from ottla.sim.coverage.excused import (
    DELIVERIES_EXCUSED,
    OVERLAPS_EXCUSED,
    STEPS_EXCUSED,
)
from ottla.sim.coverage.excused_functions import FUNCTIONS_EXCUSED
from ottla.sim.coverage.overlaps import ACTIVITIES, GROUP, REPLICA
from ottla.sim.coverage.steps import FAULTS, MET, STEPS

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ROOT / "tests/sim/coverage/measured.json"
PAGE = ROOT / "docs/reference/coverage.md"
EXCUSED: dict[str, dict[Any, str]] = {
    "overlaps": OVERLAPS_EXCUSED,
    "steps": STEPS_EXCUSED,
    "messages": DELIVERIES_EXCUSED,
}
_HEAD = """\
# What sweeps reach

This page is generated from `tests/sim/coverage/measured.json` and `sim/coverage/excused*.py`;
`tests/sim/coverage/test_page.py` compares them.

A fault that never strikes and a pair of events that never meet find no bug. `ottla sim coverage`
runs seeds again, and counts what they reach: scenarios, rules, answers, abstract states
([the simulator](../explanation/simulation.md#understanding-a-run)), and the four tables of this
page. A cell is how often it came about, and in how many seeds. **0** was never reached. **-** was
never reached, and there is a reason below. The figures are of {date}, and of

```console
{command}
```

With `--json` it prints all of this for programs, and `--out page.html` writes a page.
"""
_OVERLAPS = """
## Overlaps

Above the diagonal: both were under way on one replica. Below it: both in one group, on any of its
replicas. On the diagonal: it was under way at all. `sim/coverage/overlaps.py` says from when to
when each is under way.

"""
_STEPS = """
## Faults at durable steps

How often a node died at a step, a link of the node was cut or clogged there, or its disk stalled.
`sim/coverage/steps.py` says where each step begins and ends.

"""
_MESSAGES = """
## Late messages

How many messages between nodes arrived after so many leaders had been elected since they were sent
(`sim/coverage/deliveries.py`).

"""
_FUNCTIONS = """
## Functions that no seed enters

`--functions` traces which functions of `raft/`, `idempotency/`, `log/` and `broker/` the seeds
enter, which makes them about twice as slow.
Of {all:,} functions {entered:,} were entered in {seeds:,} seeds:

```console
{command}
```

{excused:,} others are excused, one by one, in `sim/coverage/excused_functions.py`. By room:

| room | functions | reason |
|---|---|---|
"""
_BARE = """
These have no excuse. No sweep notices a bug in them:

"""


def measured() -> dict[str, Any]:
    """What was measured: the date, and two commands with what they printed."""
    told: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return told


def coverage_markdown(told: dict[str, Any]) -> str:
    """The whole page, in Markdown, with a newline at the end."""
    counts, functions = told["counts"], told["functions"]
    head = _HEAD.format(date=told["date"], command="$ " + counts["command"])
    parts = [head, _OVERLAPS, _overlaps(counts["overlaps"]), _zeros("overlaps", counts)]
    parts += [_STEPS, _table(counts["steps"], STEPS, FAULTS, "step", STEPS_EXCUSED)]
    parts += [_zeros("steps", counts), _MESSAGES]
    parts += [_table(counts["messages"], TYPES, LATENESS, "message", DELIVERIES_EXCUSED)]
    parts += [_zeros("messages", counts), _functions(functions)]
    return "".join(parts)


def _cells(rows: list[dict[str, Any]]) -> dict[tuple[str, ...], dict[str, Any]]:
    return {tuple(row["what"]): row for row in rows}


def _cell(row: dict[str, Any], *, excused: bool) -> str:
    if row["times"]:
        return f"{row['times']:,} in {row['seeds']:,}"
    return "-" if excused else "**0**"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _overlaps(rows: list[dict[str, Any]]) -> str:
    found, lines = _cells(rows), [_line("", *ACTIVITIES), "|---" * (len(ACTIVITIES) + 1) + "|\n"]
    for down, one in enumerate(ACTIVITIES):
        cells = []
        for right, other in enumerate(ACTIVITIES):
            what = (one, other, REPLICA) if down < right else (other, one, GROUP)
            cells.append(_cell(found[what], excused=what in OVERLAPS_EXCUSED))
        lines.append(_line(f"**{one}**", *cells))
    return "".join(lines)


def _table(
    rows: list[dict[str, Any]],
    names: tuple[str, ...],
    columns: tuple[str, ...],
    title: str,
    reasons: dict[Any, str],
) -> str:
    found, wanted = _cells(rows), {*MET, *DELIVERIES}
    lines = [_line(title, *columns), "|---" * (len(columns) + 1) + "|\n"]
    for name in names:
        cells = [
            _cell(found[name, each], excused=(name, each) in reasons)
            if (name, each) in wanted
            else ""
            for each in columns
        ]
        lines.append(_line(name, *cells))
    return "".join(lines)


def _zeros(which: str, counts: dict[str, Any]) -> str:
    """The reasons of what was never reached, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for what, row in _cells(counts[which]).items():
        reason = EXCUSED[which].get(what)
        if not row["times"] and reason is not None:
            by_reason.setdefault(reason, []).append(" · ".join(what))
    if not by_reason:
        return ""
    lines = ["\n", _line("never", "reason"), "|---|---|\n"]
    return "".join([*lines, *(_line("; ".join(each), why) for why, each in by_reason.items())])


def _functions(told: dict[str, Any]) -> str:
    bare, excused = told["not_entered"], told["excused"]
    count = sum(excused.values())
    entered = told["all"] - count - len(bare)
    words = {"all": told["all"], "entered": entered, "excused": count, "seeds": told["seeds"]}
    parts = [_FUNCTIONS.format(command="$ " + told["command"], **words)]
    rooms: dict[tuple[str, str], int] = {}
    for place, times in excused.items():
        room = place.split(" ")[0].rpartition("/")[0] + "/"
        key = room, FUNCTIONS_EXCUSED[place]
        rooms[key] = rooms.get(key, 0) + times
    parts += [_line(f"`{room}`", str(times), why) for (room, why), times in sorted(rooms.items())]
    if bare:
        files: dict[str, list[str]] = {}
        for each in bare:
            file, name = each.split(" ", 1)
            files.setdefault(file, []).append(f"`{_outer(name)}`")
        rows = [
            _line(f"`{file}`", ", ".join(dict.fromkeys(names))) for file, names in files.items()
        ]
        parts += [_BARE, _line("file", "functions"), "|---|---|\n", *rows]
    return "".join(parts)


def _outer(name: str) -> str:
    """The function of a module or class that a function is, or lies in."""
    parts = name.split(".")
    while len(parts) > 1 and not parts[-2].lstrip("_")[:1].isupper():
        parts.pop()
    return ".".join(parts)
