"""Which nodes librdkafka's clients, producer and consumer alike, ask and leave.

They stay with the connection that they used last, because it most likely works: a node that was
asked a moment ago is asked again, whatever it answered. Nodes that Metadata does not name are left
at once, with all requests open there (since 2.10). So a client stops asking a node that knows
nothing only because of that node's own answer. Java's clients keep such a connection and only stop
asking on it.

Not modelled: librdkafka prefers brokers learned from Metadata to those of bootstrap.servers, which
are the same here; and after ten minutes without use it counts in hours.
"""

from __future__ import annotations

from typing import Any

from ottla.raft.types import Micros, NodeId
from ottla.sim.clients.base import Client
from ottla.sim.clients.consumer import Consumer
from ottla.sim.clients.link import Link
from ottla.sim.clients.worker import MS

SECOND: Micros = 1_000 * MS
CONNECT_EVERY: Micros = SECOND
"""While no connection is up, another one is begun this often (rd_kafka_1s_tmr_cb)."""


class LibrdkafkaClient(Client):
    """See the module's docstring."""

    def __init__(self, *arguments: Any, **named: Any):
        super().__init__(*arguments, **named)
        self._begun_at: Micros = -CONNECT_EVERY

    def named(self, nodes: tuple[NodeId, ...]) -> None:
        """Leave the nodes that are not named
        (rd_kafka_metadata_decommission_unavailable_brokers)."""
        super().named(nodes)
        for node in [each for each in self.links if each not in self.nodes]:
            self.links[node].leave("not named any more")

    def least_loaded(self) -> Link | None:
        """A connection to ask for Metadata on: the least idle one, in whole seconds since something
        was last sent on it; any one among equals (rd_kafka_broker_weight_usable)."""
        up = self._up()
        now = self.kernel.now
        idle = [(now - each.sent_at) // SECOND for each in up]
        least = min(idle, default=0)
        return self._any([each for each, span in zip(up, idle, strict=True) if span == least])

    def any_up(self) -> Link | None:
        """Any connection that is up (rd_kafka_broker_any_up)."""
        return self._any(self._up())

    def _up(self) -> list[Link]:
        links = [self.links[each] for each in self.nodes if each in self.links]
        return [each for each in links if each.ready]

    def _any(self, links: list[Link]) -> Link | None:
        if links:
            return links[self.surroundings.stream.below(len(links))]
        self._connect_any()
        return None

    def _connect_any(self) -> None:
        """No connection is up: begin one more, to any node without one; nodes that were never tried
        come first (rd_kafka_connect_any)."""
        again = self._begun_at + CONNECT_EVERY
        if self.links and self.kernel.now < again:
            self.alarm(again)
            return
        start = self.surroundings.stream.below(len(self.nodes))
        turned = self.nodes[start:] + self.nodes[:start]
        unlinked = [each for each in turned if each not in self.links]
        if self.connect_one(sorted(unlinked, key=self.was_tried)):
            self._begun_at = self.kernel.now
            self.alarm(self.kernel.now + CONNECT_EVERY)


class LibrdkafkaConsumer(LibrdkafkaClient, Consumer):
    """A consumer of librdkafka's: it differs only in which nodes it asks for Metadata."""
