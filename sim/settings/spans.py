"""Spans that contradict each other: with some no leader is elected or stays, or no replica is in
sync.

Each check takes what it compares, in the units of its names, and raises `ConfigError`, which names
the setting to change.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.errors import ConfigError
from ottla.raft.types import Micros, NodeId


def check_syncs(sync_us: Micros, jitter_us: Micros, stall_ms: int) -> None:
    """Whether most syncs end before leaders resign, at `sync_stall_ms`."""
    stall_us = 1_000 * stall_ms
    if sync_us > stall_us:
        raise ConfigError(
            f"sync_us is {sync_us}, longer than sync_stall_ms ({stall_ms}): every leader would "
            "resign at every sync"
        )
    # Exponential with this mean: one in twenty takes longer than three times the mean.
    if sync_us + 3 * jitter_us > stall_us:
        raise ConfigError(
            f"sync_jitter_us is {jitter_us}: with sync_us ({sync_us}) too many syncs take longer "
            f"than sync_stall_ms ({stall_ms}), and leaders resign at those; a third of it is "
            "possible"
        )


def check_elections(
    timeout_ms: int, syncing_us: Micros, trip_us: Micros, group: Sequence[NodeId]
) -> None:
    """Whether a leader could be elected and stay, in the group whose nearest majority is farthest
    apart (`trip_us`, there and back). A leader is deposed if it has not heard a majority for an
    election timeout. A candidate is elected only if both ends have synced the vote within the
    longest of its timeouts, which is twice the election timeout."""
    timeout_us = 1_000 * timeout_ms
    voting_us = trip_us + 2 * syncing_us
    told = f"election_timeout_ms is {timeout_ms}, but"
    named = f"nodes {', '.join(map(str, group))}"
    if trip_us >= timeout_us:
        raise ConfigError(
            f"{told} the nearest majority of {named} is {trip_us // 1_000} ms apart, there and "
            "back: no leader could stay"
        )
    if trip_us and voting_us >= 2 * timeout_us:
        raise ConfigError(
            f"{told} a vote among {named} takes {voting_us // 1_000} ms, with a sync at both "
            "ends: nobody could be elected"
        )
