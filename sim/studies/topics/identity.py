"""Which topic it is: a name may be given again, an id is not. Pure.

**Theory.** Offsets alone do not show that a topic was deleted and created anew: once the new one is
as long as the old one was, they go on as if nothing had happened, and what is read is the end of
another log. Brokers have an id for every topic (Metadata from version 10 on, KIP-516), so it is
kept beside the offsets, and compared each time. A broker that names no id is believed, and so are
offsets that were kept before ids were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ottla.sim.studies.topics.asked import Offsets, SourceError

IDS = "topic ids"
"""Where ids stand among the topics of offsets: no topic is called so, names have no space."""
WITHOUT = "without leader"
"""Where partitions stand that have had no leader for a while, likewise: a stream leaves them where
they are, and whoever reads its progress sees why."""

Ids: TypeAlias = Mapping[str, str]
"""Topic → its id; without those that have none."""
Place: TypeAlias = tuple[str, int]
"""A topic and a partition of it."""
Kept: TypeAlias = dict[str, dict[str, Any]]
"""Offsets as a checkpoint has them: with ids, where there are any."""


def joined(offsets: Offsets, ids: Ids, without: Iterable[Place] = ()) -> Kept:
    """Offsets and ids as a checkpoint has them, and which partitions have been `without` leader."""
    kept: Kept = {**offsets, IDS: dict(ids)} if ids else {**offsets}
    for topic, partition in sorted(without):
        kept.setdefault(WITHOUT, {}).setdefault(topic, []).append(partition)
    return kept


def without_leader(kept: Kept, topic: str) -> tuple[int, ...]:
    """The partitions of a topic that have had no leader for a while."""
    return tuple(kept.get(WITHOUT, {}).get(topic, ()))


def parted(kept: Kept) -> tuple[Offsets, Ids]:
    """The offsets and ids that `joined` has put together."""
    offsets = {topic: each for topic, each in kept.items() if topic not in {IDS, WITHOUT}}
    return offsets, kept.get(IDS, {})


def same(before: Ids, now: Ids) -> Ids:
    """All that is known of ids. Raises `SourceError` when a topic is another one by now."""
    for topic, each in before.items():
        check_same(topic, each, now.get(topic))
    return {**before, **now}


def check_same(topic: str, before: str | None, now: str | None) -> None:
    """Raises `SourceError` when both ids are known and are not the same."""
    if before is not None and now is not None and before != now:
        raise SourceError(
            f"topic {topic} is another one than was read: it was deleted and created anew (its id "
            f"was {before} and is {now}); begin again, with another checkpoint"
        )
