"""The scenarios as a page: `docs/reference/scenarios.md` is what this writes.

Each file opens with a comment `sim-S07 (source): sentence` and says what is legal and illegal;
which mutants it catches is in its `mutant` lines. `tests/sim/scenarios/test_scenarios.py` compares
page and files; with OTTLA_REWRITE=1 it writes the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
_OPENING = re.compile(r"(sim-S\d\d) \((.+?)\): (.+?\.) Legal: (.+) Illegal: (.+)")
_HEAD = """\
# Scenarios

This page is generated from the files in `sim/scenarios/`; `tests/sim/scenarios/test_scenarios.py`
plays each of them and compares the two.

A scenario is a transcript: commands to a simulated world of nodes, and what happened. Nothing in it
is random. Its whole history goes to the same judge as that of a sweep, and where mutants are named
it is played again with that safety mechanism switched off, which the judge must notice
(`sim/mutants/catalogue.py`, [invariants](invariants.md)). `sim/scenarios/script.py` has the
language.

| id | what happens | from | mutants caught |
|---|---|---|---|
"""


class Opening(NamedTuple):
    """What a scenario says of itself."""

    id: str
    source: str
    sentence: str
    legal: str
    illegal: str
    mutants: tuple[str, ...]


def files() -> Sequence[Path]:
    """All scenarios, in the order of their numbers."""
    return sorted(FOLDER.glob("*.txt"))


def opening_of(text: str) -> Opening:
    """What a scenario says of itself. Raises `ValueError` when it does not."""
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
    said = " ".join(line.removeprefix("#").strip() for line in lines)
    found = _OPENING.fullmatch(said)
    if found is None:
        raise ValueError(f"not 'sim-S00 (source): sentence. Legal: ... Illegal: ...': {said!r}")
    words = [line.split() for line in text.splitlines() if line.startswith("> mutant ")]
    caught = dict.fromkeys(each[2] for each in words)
    id_, source, sentence, legal, illegal = found.groups()
    return Opening(id_, source, sentence, legal, illegal, tuple(caught))


def scenarios_markdown() -> str:
    """The whole page, in Markdown, with a newline at the end."""
    parts = [_HEAD]
    for path in files():
        told = opening_of(path.read_text(encoding="utf-8"))
        link = f"[{told.id}](../../sim/scenarios/{path.name})"
        mutants = " ".join(told.mutants)
        parts.append(f"| {link} | {told.sentence} | {told.source} | {mutants} |\n")
    return "".join(parts)
