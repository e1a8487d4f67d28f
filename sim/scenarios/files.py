"""The files of the scenarios, and the description in each.

A file opens with a comment `sim-S07 (source): sentence` that also says what is legal and illegal.
Its `mutant` lines say which mutants it catches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
_OPENING = re.compile(r"(sim-S\d\d) \((.+?)\): (.+?\.) Legal: (.+) Illegal: (.+)")


class Opening(NamedTuple):
    """The description of a scenario."""

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
    """The description in a scenario. Raises `ValueError` if there is none."""
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
    said = " ".join(line.removeprefix("#").strip() for line in lines)
    found = _OPENING.fullmatch(said)
    if found is None:
        raise ValueError(f"not 'sim-S00 (source): sentence. Legal: ... Illegal: ...': {said!r}")
    words = [line.split() for line in text.splitlines() if line.startswith("> mutant ")]
    caught = dict.fromkeys(each[2] for each in words)
    id_, source, sentence, legal, illegal = found.groups()
    return Opening(id_, source, sentence, legal, illegal, tuple(caught))
