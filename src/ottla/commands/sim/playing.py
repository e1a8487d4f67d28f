"""`ottla sim play`: a scenario of your own, played line by line.

What happens stands below each command, as in the files of `sim/scenarios/`. A file that holds what
happened before is compared with what happens now, so a scenario is a test, too.
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer

from ottla.commands.sim.asking import check_out
from ottla.commands.sim.telling import busy, say
from ottla.commands.usage import UsageError, file, refused


def play(
    scenario: Annotated[
        Path, typer.Argument(parser=file, metavar="FILE", help="A scenario, as a text file.")
    ],
    *,
    write: Annotated[
        bool, typer.Option("--write", help="Write what happens into the file.")
    ] = False,
) -> None:
    """Play a scenario, and print what happens below each of its commands.

    Ends with status 1 if its lines `judge` and `mutant` find what they do not name, or if the file
    says that something else happens. With --write, the file says what happens now.
    """
    from ottla.sim.plugins.files import setting
    from ottla.sim.scenarios.lines import ScenarioError
    from ottla.sim.scenarios.own import play as play_text

    if write:
        check_out(scenario)
    try:
        text = scenario.read_text(encoding="utf-8")
        with busy(f"playing {scenario.name}"):
            played, unexpected = play_text(text, setting())
        if write:
            scenario.write_text(played, encoding="utf-8")
    except (ScenarioError, UnicodeDecodeError) as error:
        raise UsageError(f"{scenario}: {error}") from None
    except OSError as error:
        raise UsageError(f"{scenario}: {refused(error, 'a scenario')}") from None
    say(played.rstrip("\n"))
    differs = None if write else _first_difference(text, played)
    if differs:
        say(differs)
    for each in unexpected:
        say(f"unexpected: {each}")
    raise typer.Exit(1 if unexpected or differs else 0)


def _first_difference(text: str, played: str) -> str:
    """Where the file says something else than what happened; empty if it says nothing else, or
    does not say what happens."""
    if not any(line.startswith("  ") for line in text.splitlines()):
        return ""
    pairs = zip_longest(text.splitlines(), played.splitlines(), fillvalue="")
    for number, (there, now) in enumerate(pairs, 1):
        if there != now:
            return f"differs: line {number} of the file says {there!r}, now it is {now!r}"
    return ""
