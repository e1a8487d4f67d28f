"""At the end of a run: one more record for each partition that the healed nodes must serve.

**Theory.** A partition makes progress when two things have happened: its leader's high watermark is
above every record that any living replica held when the probes began, because nothing older can
move it there; and a client was told of its probe (sim-I31 asks for that as well). A probe that was
given up is sent again, because a client that waits for a node that is not healed may need a request
timeout until it asks another one, and not every record has that much time. A probe that is not
stored in time is sim-I31, unless no leader could be asked for it (`Probes.excuse`). A leader that
was asked and could have stored the record is never excused, healed or not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from ottla.log.types import Offset
from ottla.raft.types import NodeId
from ottla.sim.clients.base import Client
from ottla.sim.ending.lost_clients import lost
from ottla.sim.settings.ranges import AROUND_BYTES
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.life import awake
from ottla.sim.world.world import World

_ENDS = frozenset({"ok", "fail", "info"})
_ANSWERS = frozenset({"answer", "ok", "leader"})
_TOO_LARGE = "MESSAGE_TOO_LARGE"


class Asked(Protocol):
    """The producers of a run, as its probes use them."""

    def probe(self, partition: int) -> int:
        """Send a record to this partition; returns its number."""

    def asker(self, partition: int) -> Client:
        """The client that sends that record."""


class Probes:
    """See the module's docstring. `core`: the nodes that were healed; `healed`: the row since
    when."""

    def __init__(
        self,
        world: World,
        clients: Asked,
        core: Collection[NodeId],
        partitions: Sequence[int],
        healed: int,
    ):
        self.world = world
        self.clients = clients
        self.core = core
        self.left = list(partitions)
        """Partitions in which nothing has been stored yet."""
        self._healed = healed
        self._marks = {each: _end(world, each) for each in partitions}
        self._begun = self._seen = len(world.history.rows)
        self._open = {clients.probe(each): each for each in partitions}
        """Partition of each record that has no outcome yet."""
        self._told: set[int] = set()
        """Partitions of which a probe was acknowledged."""
        self._refused: set[int] = set()
        """Partitions whose last probe was too large for them."""

    def stored(self) -> bool:
        """Whether a record has been stored in each of them; sends probes again that were given
        up."""
        ended = self._ended()
        self.left = [each for each in self.left if each not in self._told or not self._passed(each)]
        for partition in ended:
            if partition in self.left:
                self._open[self.clients.probe(partition)] = partition
        return not self.left

    def _passed(self, partition: int) -> bool:
        return self.world.high_watermark(partition, -1) > self._marks[partition]

    def _ended(self) -> list[int]:
        """Partitions whose probes got their outcome since the last call."""
        rows = self.world.history.rows
        ended = []
        for row in rows[self._seen :]:
            if row.kind in _ENDS and row.op in self._open:
                ended.append(self._open.pop(row.op))
                if row.kind == "ok":
                    self._told.add(ended[-1])
                elif row.code == _TOO_LARGE:
                    self._refused.add(ended[-1])
        self._seen = len(rows)
        return ended

    def excuse(self, partition: int) -> str:
        """Why no leader could be asked to store a record; empty: one could be, or was. Each answer
        has a seed that needs it in `tests/sim/ending/test_probes.py`."""
        config, leader = self.world.config, awake(self.world.leader(partition))
        if leader is None:
            return ""
        inside = [each for each in self.world.placement[partition] if each in self.core]
        if config.acks == -1 and len(inside) < config.min_insync:
            return f"acks=all needs {config.min_insync} replicas in sync, there are {inside}"
        if partition in self._refused and _too_large(config):
            return f"its records are larger than {config.max_message_bytes} bytes, which it takes"
        if self._was_asked(partition, leader.node_id):
            return ""
        why = lost(self.world, self.clients.asker(partition), partition, self.core)
        return f"its producer asks {why}" if why else ""

    def _was_asked(self, partition: int, leader: NodeId) -> bool:
        """Whether the probing client sent the leader something since the probes began; or since it
        leads, without an answer, because a leader that answers nothing loses its clients to others.
        A request that met a reset went to an earlier life of that node (seed 10081453)."""
        asked, probe, asker = False, False, self.clients.asker(partition).number
        for row in self.world.history.rows[self._healed :]:
            if row.node != leader or row.client not in {None, asker}:
                continue
            if row.kind == "close":
                asked = asked and row.code != "reset"
            elif row.partition == partition and row.kind == "send":
                asked, probe = True, row.eid >= self._begun
            elif row.partition == partition and row.kind in _ANSWERS:
                if asked and probe:
                    return True
                asked = False
        return asked


def _too_large(config: RunConfig) -> bool:
    """Whether a topic may refuse a record that is alone in its batch. Within `AROUND_BYTES` of the
    limit it depends on how its client encodes it."""
    return config.record_bytes + AROUND_BYTES > config.max_message_bytes


def _end(world: World, partition: int) -> Offset:
    """The end of the longest log of a living replica."""
    replicas = world.replicas(partition).values()
    return max((each.of_partition().log_end_offset for each in replicas), default=0)
