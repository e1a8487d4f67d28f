"""`ottla sim coverage`: what a sweep reached.

The folder of a sweep names seeds and settings. They are run again, because a sweep keeps verdicts,
not histories. Scenarios, rules and answers that were reached are listed with the first seed that
reached them; what overlapped, which durable steps faults met, and which messages came late, with
how often (`counts`). What no seed reached is listed, too.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands import usage
from ottla.commands.sim.asking import (
    AsJson,
    ConfigFile,
    Jobs,
    Settings,
    check_faults,
    config_of,
    seed_of,
    warn_of_other_code,
)
from ottla.commands.sim.counts import in_json, say_counts
from ottla.commands.sim.explaining import check_page, given, write_and_say
from ottla.commands.sim.interrupting import NOTHING, interruptible
from ottla.commands.sim.telling import Line, say, say_object
from ottla.commands.usage import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.sim.coverage.cover import Cover, Tally
    from ottla.sim.sweeps.sweep_folder import Plan

MARKS = 10
"""Lines that show how the number of states grows."""
BAR = 40
SEEDS = 200

Swept = Annotated[
    Path | None,
    typer.Argument(
        parser=usage.folder,
        metavar="FOLDER",
        help="A folder of `ottla sim sweep --out`; its seeds are used.",
    ),
]


def coverage(
    folder: Swept = None,
    *,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many; 200 by default.")] = None,
    first: Annotated[str | None, typer.Option(help="The first seed; 0 by default.")] = None,
    jobs: Jobs = 1,
    config: ConfigFile = None,
    settings: Settings = None,
    functions: Annotated[
        bool,
        typer.Option("--functions", help="Also list the broker's functions that no seed enters."),
    ] = False,
    as_json: AsJson = False,
    out: Annotated[
        Path | None, usage.file_option("Also write a page with a curve and each state.")
    ] = None,
) -> None:
    """Run seeds, and count what they reach: scenarios, rules, states; what overlaps, durable steps,
    late messages."""
    from ottla.sim.coverage.cover import Cover
    from ottla.sim.coverage.cover import cover as reach
    from ottla.sim.settings.settings_file import from_toml

    check_page(out)
    plan = _plan(folder, first, seeds, config, settings)
    shared = from_toml(plan.settings)
    numbers = range(plan.first, plan.first + plan.seeds)
    found = Cover.of(shared, functions_too=functions)
    line, begun = Line(), monotonic()
    line.doing("running the first seeds")
    with interruptible(
        line, lambda: f"{len(found.growth)} of {plan.seeds} seeds are done, {NOTHING}"
    ):
        reaching = reach(numbers, plan.settings, jobs, functions_too=functions)
        for done, reached in enumerate(reaching, 1):
            found.add(reached)
            rate = done / max(monotonic() - begun, 1e-9)
            states = found.growth[-1]
            line.show(f"{done} of {plan.seeds} seeds, {states} states, {rate:.1f} seeds/s")
    if as_json:
        line.clear()
        say_object(in_json(found))
    else:
        line.end()
        _tell(found)
    if out is not None:
        from ottla.report.explain.coverage import cover_page

        drawn = ["--first", first or str(plan.first), "--seeds", str(plan.seeds)]
        where = drawn if folder is None else [str(folder)]
        command = ["ottla", "sim", "coverage", *where, *given(config, settings)]
        text = cover_page(found, shlex.join(command))
        write_and_say(out, text)


def _plan(
    folder: Path | None,
    first: str | None,
    seeds: int | None,
    config: Path | None,
    settings: list[str] | None,
) -> Plan:
    from ottla.broker.errors import ConfigError
    from ottla.sim.settings.settings_file import from_toml
    from ottla.sim.sweeps.sweep_folder import Plan, SweepError, swept_into

    if folder is None:
        begin = 0 if first is None else seed_of(first)
        return Plan(begin, seeds or SEEDS, config_of(config, settings).told())
    if first is not None or seeds is not None:
        raise UsageError(f"{folder}: a sweep has its own seeds; leave out --first and --seeds")
    if config is not None or settings:
        raise UsageError(f"{folder}: a sweep has its own settings; leave out --config and --set")
    try:
        swept = swept_into(folder)
    except SweepError as error:
        raise UsageError(str(error)) from None
    try:
        check_faults(from_toml(swept.plan.settings))
    except ConfigError as error:
        raise UsageError(f"{folder}: its settings are not this Ottla's: {error}") from None
    warn_of_other_code(f"{folder}: swept", swept.code, "its seeds may be other runs")
    return swept.plan


def _tell(found: Cover) -> None:
    from ottla.sim.coverage.predicates import PREDICATES

    says = {each.id: each.says for each in PREDICATES}
    seeds = len(found.growth)
    _table("scenario", found.predicates, seeds, says)
    _table("rule", found.rules, seeds, {})
    _table("answer", found.answers, seeds, {})
    _growth(found.growth)
    last = seeds - max(1, seeds // 10)
    say(f"{found.newcomers} states came with the last {seeds - last} seeds")
    say_counts(found)


def _table(title: str, tallies: Mapping[str, Tally], seeds: int, says: Mapping[str, str]) -> None:
    say(f"{'seeds':>6} {'share':>7} {'first':>6}  {title}")
    for name, tally in tallies.items():
        if tally.first is not None:
            share = f"{tally.seeds / seeds:.1%}"
            say(f"{tally.seeds:>6} {share:>7} {tally.first:>6}  {_named(name, says)}")
    never = [_named(name, says) for name, tally in tallies.items() if tally.first is None]
    for name in never:
        say(f"{'never reached':>21}  {name}")


def _named(name: str, says: Mapping[str, str]) -> str:
    return f"{name} {says[name]}" if name in says else name


def _growth(states: Sequence[int]) -> None:
    say(f"{'seeds':>6} {'states':>7}")
    count = len(states)
    for mark in range(1, min(MARKS, count) + 1):
        place = count * mark // min(MARKS, count)
        known = states[place - 1]
        say(f"{place:>6} {known:>7}  {'#' * round(BAR * known / max(states[-1], 1))}")
