"""Round trips of single links, as the setting `links` spells them: a slow follower, a far client.

`1-2:20000 c-3:400` sets 20 ms, there and back, between nodes 1 and 2, and 0.4 ms between node 3 and
every client. Links without an entry take `rtt_us` and `client_rtt_us`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

from ottla.broker.controller.placement import PlacementCounts
from ottla.broker.errors import ConfigError
from ottla.raft.quorum import majority
from ottla.raft.types import Micros, NodeId

CLIENTS: NodeId = 0
"""Stands for all clients in the name of a link: no node has that number."""
MAX_WAIT_US: Micros = 2 * 10**6
"""Longest time that messages and syncs may take: 2 s. A producer gets no id unless the controller
can be asked, and can have its followers store something, within 5 s
(`broker/node/producer_ids.py`)."""
RoundTrips: TypeAlias = Mapping[tuple[NodeId, NodeId], Micros]
"""The least time there and back, by both ends; each link has an entry in both directions."""

_NAMED = re.compile(r"(c|[1-9])-([1-9]):(\d{1,9})")


def round_trips(links: str, nodes: int) -> RoundTrips:
    """The round trips of the setting, for a cluster of so many nodes. Raises `ConfigError`."""
    found: dict[tuple[NodeId, NodeId], Micros] = {}
    for each in links.split():
        matched = _NAMED.fullmatch(each)
        if matched is None:
            raise ConfigError(f"links: {each!r}; write 1-2:20000 (20 ms there and back) or c-1:400")
        a = CLIENTS if matched[1] == "c" else int(matched[1])
        b, span = int(matched[2]), int(matched[3])
        if a == b or max(a, b) > nodes:
            raise ConfigError(f"links: {each!r}; there are nodes 1 to {nodes}, and c for clients")
        if span > MAX_WAIT_US:
            raise ConfigError(f"links: {each!r}; 0 to {MAX_WAIT_US} are possible")
        if (a, b) in found:
            raise ConfigError(f"links: {each!r}; this link is named twice")
        found[a, b] = found[b, a] = span
    return found


def links_within(links: str, nodes: int) -> str:
    """The setting without the links of nodes above `nodes`."""
    kept = []
    for each in links.split():
        matched = _NAMED.fullmatch(each)
        if matched and all(end == "c" or int(end) <= nodes for end in matched.groups()[:2]):
            kept.append(each)
    return " ".join(kept)


def groups_of(nodes: int, partitions: int, replicas: int) -> list[tuple[NodeId, ...]]:
    """Which nodes have to agree with each other: all nodes about the controller's log, and the
    replicas of each partition of a new topic."""
    everybody = tuple(range(1, nodes + 1))
    placed = PlacementCounts().place(everybody, partitions, replicas) if replicas < nodes else ()
    return [everybody, *dict.fromkeys(tuple(sorted(each)) for each in placed)]


def majority_us(group: Collection[NodeId], trips: RoundTrips, rtt_us: Micros) -> Micros:
    """The least round trip in which some node of the group reaches a majority, itself included;
    `rtt_us` for links without an entry."""
    return near_us(group, majority(len(group)), trips, rtt_us)


def near_us(nodes: Collection[NodeId], needed: int, trips: RoundTrips, rtt_us: Micros) -> Micros:
    """The least round trip in which some of these nodes reaches `needed` of them, itself
    included."""
    if needed <= 1:
        return 0
    return min(
        sorted(trips.get((a, b), rtt_us) for b in nodes if b != a)[needed - 2] for a in nodes
    )
