"""Pairs of variants that can be compared answer by answer: they differ only in their profile, also
in what the swarm draws for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ottla.sim.studies.study import Variant

PAIRS = "pairs"


def pairs(variants: Sequence[Variant]) -> tuple[tuple[int, int], ...]:
    """The numbers of the two variants of each pair, the lower one first."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for each in variants:
        rest = [item for item in each.config.values().items() if item[0] != "profile"]
        alike.setdefault((*rest, each.held, each.failure), []).append(each.number)
    profiles = [each.config.profile for each in variants]
    return tuple(
        (one, other)
        for group in alike.values()
        for one, other in combinations(group, 2)
        if profiles[one] != profiles[other]
    )


def pairs_query(variants: Sequence[Variant]) -> str:
    """The query for table `pairs`, with columns variant and other."""
    found = pairs(variants) or ((0, 0),)
    rows = ", ".join(map(str, found))
    return f"SELECT variant, other FROM (VALUES {rows}) AS p(variant, other) WHERE variant < other"
