"""The settings of a core: its group and node id, its timeouts and limits; and its jitter source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ottla.raft.errors import InvalidConfigError
from ottla.raft.types import NO_NODE, GroupId, Micros, NodeId


class JitterSource(Protocol):
    """The source of random election timeouts (thesis 9.3). The caller hands it in, so that a run
    can be replayed."""

    def randrange(self, stop: int, /) -> int:
        """A number from 0 to `stop` - 1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    """Settings of one member of one group. Raises `InvalidConfigError` when they cannot work."""

    group: GroupId
    node: NodeId
    election_timeout: Micros
    """The shortest election timeout; each wait is drawn from [1x, 2x). Also the span of the
    leader's check-quorum, and the time limit of barriers and transfers."""
    retransmit: Micros
    """An unanswered message is sent again after at least this time and at most twice this time;
    less often to a follower that stays silent."""
    max_append_bytes: int = 1 << 20
    """Bytes in one AppendEntries. A single larger entry is still sent."""
    max_append_entries: int = 500
    """Entries in one AppendEntries."""
    max_inflight_bytes: int = 16 << 20
    """Bytes sent to one follower and not acknowledged. A single larger entry is still sent."""
    snapshot_chunk_bytes: int = 256 << 10

    def __post_init__(self) -> None:
        for name in (
            "election_timeout",
            "retransmit",
            "max_append_bytes",
            "max_append_entries",
            "max_inflight_bytes",
            "snapshot_chunk_bytes",
        ):
            if getattr(self, name) <= 0:
                raise InvalidConfigError(f"{name} is {getattr(self, name)}, must be above 0")
        if self.node <= NO_NODE:
            raise InvalidConfigError(f"node id is {self.node}, must be above {NO_NODE}")
        if self.retransmit >= self.election_timeout:
            raise InvalidConfigError(
                f"retransmit {self.retransmit} must be below election_timeout "
                f"{self.election_timeout}: a lost vote could never be asked for again"
            )
