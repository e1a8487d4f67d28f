"""`ottla compare --fuzz N`: random requests instead of written cases.

The folder of cases is tried before anything is drawn. Each kind of difference is printed as soon as
it is shrunk, and then written as a case: what cannot be written was at least told. Meanwhile a line
of progress has the steps that are asked, or the replays of the difference that is being shrunk.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ottla.commands import usage
from ottla.commands.compare_files import check_cases, write_case
from ottla.commands.sim.interrupting import NOTHING, interruptible
from ottla.commands.sim.telling import Line, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.compare.fuzz.hunt import Found, Hunt
    from ottla.compare.fuzz.kinds import Kind
    from ottla.compare.running import Comparison

SEED = 1
"""The seed of a hunt for which none is named."""
OUT = Path("fuzz-cases")
"""Where cases go if no folder is named."""


class Draw(NamedTuple):
    """What is drawn, and where it goes."""

    steps: int
    seed: int
    out: Path


def check_fuzz(
    steps: int | None, seed: int | None, out: Path | None, others: Mapping[str, object]
) -> Draw | None:
    """What to draw; None: written cases are played. `others` are options that no hunt has. Raises
    `UsageError`."""
    if steps is None:
        if seed is not None or out is not None:
            option = "--seed" if seed is not None else "--out"
            raise usage.UsageError(f"{option} is about what is drawn; add --fuzz N")
        return None
    for name, value in others.items():
        if value:
            raise usage.UsageError(f"--fuzz draws requests and asks them, so {name} has no place")
    draw = Draw(steps, SEED if seed is None else seed, OUT if out is None else out)
    check_cases(draw.out)
    return draw


def hunt(comparison: Comparison, draw: Draw) -> None:
    """Ask both, print and write what differs. Raises `CompareError` and `UsageError`."""
    from ottla.compare.fuzz.hunt import Hunt
    from ottla.compare.fuzz.kinds import Kind

    line, going, written = Line(), Hunt(comparison, draw.seed, draw.steps), 0
    with interruptible(line, lambda: _interrupted(going, draw, written)):
        names = f"{comparison.target.name} and {comparison.other.name}"
        line.doing(f"asking {names}, seed {draw.seed}")
        for news in going.run():
            if isinstance(news, Kind):
                line.tell(partial(_shrinking, going, news))
                line.beat()
                continue
            if news is not None:
                _show(line, news, draw.out)
                written += 1
            line.show(_progress(going, draw))
        line.clear()
    for kind, count in going.differing.most_common():
        sequences = "1 sequence" if count == 1 else f"{count} sequences"
        say(usage.one_line(f"{sequences}: {kind.told()}"))


def _progress(going: Hunt, draw: Draw) -> str:
    kinds = f"{len(going.differing)} kinds of differences"
    return f"{going.steps} of {draw.steps} steps, seed {draw.seed}, {kinds}"


def _shrinking(going: Hunt, kind: Kind, since: float) -> str:
    done = f"replay {going.replays}, steps left: {going.smallest}, {since:.0f} s"
    return f"shrinking a difference: {usage.one_line(kind.told())}; {done}"


def _interrupted(going: Hunt, draw: Draw, written: int) -> str:
    kept = NOTHING
    if written:
        kept = f"{draw.out} has {'1 case' if written == 1 else f'{written} cases'}"
    return f"{going.steps} of {draw.steps} steps are done, {kept}"


def _show(line: Line, found: Found, out: Path) -> None:
    """Print what was found, and write its case. Raises `UsageError`."""
    from ottla.compare.telling import result_lines

    for each in result_lines(found.result):
        line.over(usage.one_line(each))
    (path, unreadable), count = write_case(out, found), len(found.sketch["steps"])
    for each in unreadable:
        line.over(f"          not read: {usage.one_line(each)}")
    if not found.again:
        how = f"it did not show again, alone; {count} steps showed it once"
    else:
        how = "1 step shows it" if count == 1 else f"{count} steps show it"
    line.over(f"          {how}: {path}; --fuzz {found.asked} finds it again")
