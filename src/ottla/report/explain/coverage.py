"""The page about what a sweep reached.

It shows scenarios, rules, answers, overlaps, durable steps, late messages, and states with their
growth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ottla.report.page.document import document, header, section, table
from ottla.report.page.svg import line, text
from ottla.sim.coverage.cover import Count, Cover, Tally
from ottla.sim.coverage.excused import DELIVERIES_EXCUSED, OVERLAPS_EXCUSED, STEPS_EXCUSED
from ottla.sim.coverage.points import told
from ottla.sim.coverage.predicates import PREDICATES

STYLE = Path(__file__).with_name("explain.css")
WIDTH, LEFT, RIGHT, TOP, PLOT = 1160, 70, 44, 12, 200


def cover_page(cover: Cover, command: str) -> str:
    """The whole page."""
    seeds = len(cover.growth)
    reached = sum(tally.seeds > 0 for tally in cover.predicates.values())
    lead = (
        f"{reached} of {len(PREDICATES)} scenarios came about by chance in {seeds:,} seeds; "
        f"{cover.growth[-1] if seeds else 0:,} abstract states, {cover.newcomers:,} of them in the "
        "last tenth of the seeds."
    )
    says = {each.id: each.says for each in PREDICATES}
    sections = [
        header(
            "What a sweep reached",
            ("plain", f"{seeds:,} seeds"),
            lead,
            f"<code>{escape(command)}</code>",
        ),
        section("Abstract states, by seed", f'<div class="scroll">{growth(cover.growth)}</div>'),
        section("Scenarios", _table(cover.predicates, seeds, says)),
        section("Rules of idempotent produce", _table(cover.rules, seeds, {})),
        section("What clients were answered", _table(cover.answers, seeds, {})),
        section(
            "What overlapped in a group, and on a replica",
            _counts(cover.overlaps, OVERLAPS_EXCUSED),
        ),
        section("Faults at durable steps", _counts(cover.steps, STEPS_EXCUSED)),
        section(
            "Messages that arrived after leaders had changed",
            _counts(cover.deliveries, DELIVERIES_EXCUSED),
        ),
        section(
            "Abstract states, by name",
            _table(cover.states, seeds, {name: told(name) for name in cover.states}),
        ),
    ]
    return document("What a sweep reached", sections, STYLE)


def _table(tallies: Mapping[str, Tally], seeds: int, says: Mapping[str, str]) -> str:
    rows = "".join(
        _row(
            name, says.get(name, ""), tally.seeds, f"{tally.seeds / max(seeds, 1):.1%}", tally.first
        )
        for name, tally in tallies.items()
    )
    return table(("", "", "#seeds", "#share", "#first"), rows)


def _counts(counts: Mapping[Any, Count], reasons: Mapping[Any, str]) -> str:
    rows = "".join(
        _row(", ".join(what), reasons.get(what, ""), count.times, f"{count.seeds:,}", count.first)
        for what, count in counts.items()
    )
    return table(("", "", "#times", "#seeds", "#first"), rows)


def _row(name: str, says: str, count: int, second: str, first: int | None) -> str:
    """A name, what is said of it, two figures, and the first seed that reached it."""
    return (
        f"<tr><th>{escape(name)}</th><td>{escape(says)}</td>"
        f"<td class='n'>{count:,}</td><td class='n'>{second}</td>"
        f"<td class='n'>{'never reached' if first is None else first}</td></tr>"
    )


def growth(states: Sequence[int]) -> str:
    """The curve of how many states are known after each seed."""
    most, count = max(states, default=1), max(len(states) - 1, 1)
    wide = WIDTH - LEFT - RIGHT

    def place(number: int, known: int) -> tuple[float, float]:
        return LEFT + wide * number / count, TOP + PLOT * (1 - known / most)

    parts = []
    for share in (0.0, 0.5, 1.0):
        y = TOP + PLOT * (1 - share)
        parts.append(line("grid", (LEFT, y), (WIDTH - RIGHT, y)))
        parts.append(text("tick", LEFT - 8, y + 4, f"{most * share:,.0f}", "end"))
    for number in dict.fromkeys((0, (len(states) - 1) // 2, max(len(states) - 1, 0))):
        x, _ = place(number, 0)
        parts.append(text("tick", x, TOP + PLOT + 18, f"seed {number + 1}", "middle"))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*each) for each in enumerate(states)))
    parts.append(f'<polyline class="curve" points="{points}"/>')
    label = "Abstract states known after each seed"
    return (
        f'<svg class="glance" viewBox="0 0 {WIDTH} {TOP + PLOT + 28}" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )
