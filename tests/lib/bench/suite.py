"""The whole suite: which items there are, how they are chosen, how their outcomes are shown.

An item measures one part of Ottla, as much of it as a full or a quick pass allows, and gives a
report; reports are shown as tables and written as JSON lines, beside the machine they come from.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench import (
    bursts,
    commits,
    comparing,
    disk,
    folders,
    fuzz,
    growth,
    guard,
    idempotent,
    lasting,
    looking,
    loops,
    moves,
    partitions,
    restarting,
    shrinking,
    simulator,
    starting,
    studies,
    throughput,
    turns,
)
from bench.measure import ROOT, Outcome, Report, write

KEPT = ROOT / "tests" / "bench" / "results.jsonl"
LAST = ROOT / "out" / "bench.jsonl"


class Item(NamedTuple):
    """One item of the suite and how much it does."""

    run: Callable[[Any], Report]
    full: Any
    quick: Any
    asked: bool = False
    """Measured only when it is named: it takes ten minutes, or more."""


ITEMS = {
    "null": Item(throughput.run_null, throughput.FULL, throughput.QUICK),
    "produce": Item(throughput.run_produce, throughput.FULL, throughput.QUICK),
    "idempotent": Item(idempotent.run, idempotent.FULL, idempotent.QUICK),
    "starting": Item(starting.run, starting.FULL, starting.QUICK),
    "disk": Item(disk.run, disk.FULL, disk.QUICK),
    "bursts": Item(bursts.run, bursts.FULL, bursts.QUICK),
    "moves": Item(moves.run, moves.FULL, moves.QUICK),
    "commits": Item(commits.run, commits.FULL, commits.QUICK),
    "partitions": Item(partitions.run, partitions.FULL, partitions.QUICK),
    "growth": Item(growth.run, growth.FULL, growth.QUICK),
    "guard": Item(guard.run, guard.FULL, guard.QUICK),
    "restarting": Item(restarting.run, restarting.FULL, restarting.QUICK),
    "folders": Item(folders.run, folders.FULL, folders.QUICK),
    "looking": Item(looking.run, looking.FULL, looking.QUICK),
    "fuzz": Item(fuzz.run, fuzz.FULL, fuzz.QUICK),
    "turns": Item(turns.run, turns.FULL, turns.QUICK),
    "comparing": Item(comparing.run, comparing.FULL, comparing.QUICK),
    "loops": Item(loops.run, loops.FULL, loops.QUICK),
    "simulator": Item(simulator.run, simulator.FULL, simulator.QUICK),
    "lasting": Item(lasting.run, lasting.FULL, lasting.QUICK, asked=True),
    "shrinking": Item(shrinking.run, shrinking.FULL, shrinking.QUICK, asked=True),
    "studies": Item(studies.run, studies.FULL, studies.QUICK, asked=True),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for; the exit status is 0 whatever the numbers are."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("items", nargs="*", metavar="item", help=f"of {', '.join(ITEMS)}")
    parser.add_argument("--quick", action="store_true", help="a short pass: numbers mean little")
    parser.add_argument("--keep", action="store_true", help=f"append to {KEPT.relative_to(ROOT)}")
    chosen = parser.parse_args(arguments)
    unknown = [each for each in chosen.items if each not in ITEMS]
    if unknown:
        parser.error(f"no such item: {', '.join(unknown)}")
    console = Console(width=132)
    reports = []
    for name in chosen.items or [each for each, item in ITEMS.items() if not item.asked]:
        item = ITEMS[name]
        with console.status(name):
            reports.append(item.run(item.quick if chosen.quick else item.full))
        _show(console, reports[-1])
    for path in (LAST, KEPT) if chosen.keep else (LAST,):
        write(reports, Path(path), quick=chosen.quick)
        console.print(f"written to {path.relative_to(ROOT)}")
    return 0


def _show(console: Console, report: Report) -> None:
    table = Table(title=report.item, title_justify="left", width=132)
    table.add_column("what", ratio=3)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("target", justify="right", no_wrap=True)
    table.add_column("")
    table.add_column("", ratio=4)
    for each in report.outcomes:
        table.add_row(
            each.name, f"{_number(each.measured)} {each.unit}", *_verdict(each), each.note
        )
    console.print(table)
    for name, text in report.profiles.items():
        console.print(f"where the time goes: {name}", style="bold")
        console.print(text, markup=False, highlight=False)


def _verdict(outcome: Outcome) -> tuple[str, str]:
    if outcome.target is None:
        return "", ""
    sign = ">=" if outcome.at_least else "<="
    verdict = "[green]met[/]" if outcome.met else "[red]missed[/]"
    return f"{sign} {_number(outcome.target)}", verdict


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
