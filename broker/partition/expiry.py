"""`Expiry`: which producers of a partition are idle, as its leader sees it.

The decision to forget them goes through the log, so that every replica forgets the same ones
(sim-I25, docs/decisions/0011-expiry-in-the-log.md). By default a producer is idle since the leader
applied its last batch. With `Profile.expires_by_timestamp` it is idle since the largest time among
the records of that batch, which clients set (K-EXPIRY). Then the leader reads the wall clock off
the last batch that arrived (`ClockedInspector`), and forgets nobody before one has.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.broker.partition.state import PartitionState
from ottla.idempotency.table import ProducerTable
from ottla.log.types import ProducerId
from ottla.raft.types import Micros

CHECKS_PER_PERIOD = 4
"""How often per expiry period the leader looks for idle producers."""
KAFKAS_PERIOD: Micros = 600_000_000
"""Kafka looks at least this often (producer.id.expiration.check.interval.ms)."""
AT_ONCE = 1000
"""How many producers one decision forgets."""


class Expiry:
    """See the module's docstring. One per partition replica."""

    __slots__ = ("_by_timestamp", "_expiry", "_state", "_table", "period")

    def __init__(self, state: PartitionState, table: ProducerTable):
        self._state = state
        self._table = table
        self._by_timestamp = state.settings.profile.expires_by_timestamp
        self._expiry = state.settings.producer_expiry
        self.period: Micros = self._expiry // CHECKS_PER_PERIOD
        """The time between two looks."""
        if self._by_timestamp:
            self.period = min(self.period, KAFKAS_PERIOD)

    def idle(self, now: Micros) -> Sequence[ProducerId]:
        """The producers to forget now."""
        if not self._by_timestamp:
            return self._table.idle_since(now - self._expiry, AT_ONCE)
        heard = self._state.clock
        if heard is None:
            return ()
        wall_ms = heard.wall_ms + (now - heard.at) // 1000
        return self._table.written_before(wall_ms - self._expiry // 1000, AT_ONCE)
