"""Which topic it is: a name may be used again, an id is not. Pure.

**Theory.** Offsets alone do not show that a topic was deleted and created again. Once the new one
is as long as the old one, they go on as if nothing had happened, and the end of another log is
read. Brokers have an id for every topic (Metadata from version 10 on, KIP-516), so it is stored
beside the offsets, and compared each time. If a broker names no id, or offsets were stored without
one, there is no check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ottla.sim.studies.topics.asked import Offsets, SourceError

IDS = "topic ids"
"""The key of ids among the topics of offsets: no topic has this name, because names have no
space."""
WITHOUT = "without leader"
"""In the same way the key of partitions that have had no leader for a while: a stream does not
advance in them, and readers of its progress see why."""

Ids: TypeAlias = Mapping[str, str]
"""Topic → its id; topics without an id are left out."""
Place: TypeAlias = tuple[str, int]
"""A topic and one of its partitions."""
Kept: TypeAlias = dict[str, dict[str, Any]]
"""Offsets in a checkpoint: with ids, if there are any."""


def joined(offsets: Offsets, ids: Ids, without: Iterable[Place] = ()) -> Kept:
    """Offsets and ids in the format of a checkpoint, with the partitions that have been `without` a
    leader."""
    kept: Kept = {**offsets, IDS: dict(ids)} if ids else {**offsets}
    for topic, partition in sorted(without):
        kept.setdefault(WITHOUT, {}).setdefault(topic, []).append(partition)
    return kept


def without_leader(kept: Kept, topic: str) -> tuple[int, ...]:
    """The partitions of a topic that have had no leader for a while."""
    return tuple(kept.get(WITHOUT, {}).get(topic, ()))


def parted(kept: Kept) -> tuple[Offsets, Ids]:
    """The offsets and ids that `joined` has combined."""
    offsets = {topic: each for topic, each in kept.items() if topic not in {IDS, WITHOUT}}
    return offsets, kept.get(IDS, {})


def same(before: Ids, now: Ids) -> Ids:
    """All known ids. Raises `SourceError` if a topic is now another one."""
    for topic, each in before.items():
        check_same(topic, each, now.get(topic))
    return {**before, **now}


def check_same(topic: str, before: str | None, now: str | None) -> None:
    """Raises `SourceError` if both ids are known and differ."""
    if before is not None and now is not None and before != now:
        raise SourceError(
            f"topic {topic} is another one than was read: it was deleted and created again (its id "
            f"was {before} and is {now}); begin again, with another checkpoint"
        )
