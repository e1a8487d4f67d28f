"""Which activities of a Raft group overlap: pairs of them, and how often each pair began.

Most bugs of a replicated log need two things at once: a snapshot on its way while another node
stands for election, a truncation while a flush is under way. Every activity is under way from one
event to another, on one replica. Two of them *overlap in the group* if both are under way on any of
its replicas, and *on one replica* if both are on the same one.

| activity | under way on a replica |
|---|---|
| snapshot | it sends one to a follower, or gets one, until that is installed and durable |
| compaction | it has taken a snapshot for its oldest entries, and that is not yet durable |
| truncation | it has cut its log for a newer leader, and that is not yet durable |
| barrier | it leads, and answers wait for proof of that (`ReplicaView.proves`) |
| transfer | it leads, and gives its leadership to a successor |
| election | it stands for election, or asks whether it could win one |
| flush | a sync runs that covers what it has written |
| expiry | its log has a decision to forget producers that it has not applied yet |

`Overlaps` only counts; `probe.py` says what is under way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations_with_replacement
from typing import TypeAlias

from ottla.raft.types import GroupId, NodeId

ACTIVITIES = (
    "snapshot",
    "compaction",
    "truncation",
    "barrier",
    "transfer",
    "election",
    "flush",
    "expiry",
)
GROUP, REPLICA = "group", "replica"
PLACES = (GROUP, REPLICA)
Overlap: TypeAlias = tuple[str, str, str]
"""Two activities, in the order of `ACTIVITIES`, and where they overlap (`PLACES`)."""
PAIRS: tuple[tuple[str, str], ...] = tuple(combinations_with_replacement(ACTIVITIES, 2))
"""An activity and itself: it is under way at all."""
OVERLAPS: tuple[Overlap, ...] = tuple(
    (one, other, place)
    for place in PLACES
    for one, other in PAIRS
    if one != other or place == GROUP
)
_BIT = {each: 1 << number for number, each in enumerate(ACTIVITIES)}
_PAIRS_IN = tuple(
    sum(
        1 << number
        for number, (one, other) in enumerate(PAIRS)
        if mask & _BIT[one] and mask & _BIT[other]
    )
    for mask in range(1 << len(ACTIVITIES))
)
"""The pairs, as bits, that overlap where the activities of that mask are under way."""


def mask_of(activities: Iterable[str]) -> int:
    """Activities as bits."""
    return sum(_BIT[each] for each in activities)


class Overlaps:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.counts: dict[Overlap, int] = {}
        """How often each overlap began."""
        self._seen: dict[GroupId, dict[NodeId, int]] = {}
        self._on: dict[tuple[GroupId, str], int] = {}
        """The pairs that overlap now, as bits."""

    def see(self, group: GroupId, masks: Mapping[NodeId, int]) -> None:
        """What is under way now on each replica of a group (`mask_of`)."""
        if self._seen.get(group) == masks:
            return
        self._seen[group] = dict(masks)
        anywhere = same = 0
        for mask in masks.values():
            anywhere |= mask
            same |= _PAIRS_IN[mask]
        self._count(group, GROUP, _PAIRS_IN[anywhere])
        self._count(group, REPLICA, same)

    def _count(self, group: GroupId, place: str, now: int) -> None:
        new = now & ~self._on.get((group, place), 0)
        self._on[group, place] = now
        for number, (one, other) in enumerate(PAIRS):
            if new >> number & 1 and (one != other or place == GROUP):
                overlap = one, other, place
                self.counts[overlap] = self.counts.get(overlap, 0) + 1
