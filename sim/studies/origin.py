"""What made the folders of a study: kept with each folder, because a study may be continued on
another engine, and at another commit of the same code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

from ottla.sim.machine.code_hash import commit

UNKNOWN = "not known"


@cache
def commit_here() -> str | None:
    """The commit with which this process began; the checkout may change before it ends."""
    return commit()


def told_of(engine: str, at: str | None) -> str:
    """The maker of a folder, for people: `engine` as it describes itself, and the commit."""
    return f"{engine or UNKNOWN}, at commit {at or UNKNOWN}"


def in_all(makers: Iterable[str]) -> str:
    """The makers of several folders; with counts if they differ.

    >>> in_all(["spark", "spark"]), in_all(["duckdb", "spark", "spark"]), in_all([])
    ('spark', 'spark (2 of 3 folders); duckdb (1 of 3 folders)', '')
    """
    found = Counter(makers)
    if len(found) < 2:
        return "".join(found)
    ordered = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return "; ".join(f"{name} ({count} of {found.total()} folders)" for name, count in ordered)
