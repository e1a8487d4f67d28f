"""The highest commit of leaders in all terms up to a given one."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple


class Commit(NamedTuple):
    """Up to where a leader had committed, and the chain there."""

    log_index: int
    chain: int | None = None


class Commits:
    """The highest commit of all terms up to each term; of equal ones the first that was added."""

    def __init__(self) -> None:
        self._terms: list[int] = []
        self._highest: list[Commit] = []
        """By term, in ascending order."""

    def add(self, term: int, commit: Commit) -> None:
        """Add one commit, nearly always of the newest term."""
        terms, highest = self._terms, self._highest
        place = bisect_left(terms, term)
        if place == len(terms) or terms[place] != term:
            terms.insert(place, term)
            highest.insert(place, highest[place - 1] if place else Commit(-1))
        while place < len(terms) and highest[place].log_index < commit.log_index:
            highest[place] = commit
            place += 1

    def below(self, term: int) -> Commit | None:
        """The highest commit of all lower terms."""
        place = bisect_left(self._terms, term)
        return self._highest[place - 1] if place else None
