"""The files of the scenarios, and what each says of itself.

A file opens with a comment `sim-S07 (source): sentence` and says what is legal and illegal; which
mutants it catches is in its `mutant` lines.
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
