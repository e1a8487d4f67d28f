"""How a node of a run is made: the broker's own `Node`, with the simulator at its seams.

Its clock and its store are those of its `Life`. Its network has a point before and after each
message, its partitions have a witness, and its listener serves simulated clients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ottla.broker.config import ClusterConfig
from ottla.broker.counters import Counters
from ottla.broker.event_loop.scheduler import Scheduler
from ottla.broker.node.node import Node
from ottla.broker.node.replica_factory import ReplicaFactory
from ottla.broker.wire.host import Host
from ottla.raft.types import NodeId
from ottla.sim.chance.choices import Choices
from ottla.sim.mutants.mutant import Mutants
from ottla.sim.mutants.node import node_without
from ottla.sim.mutants.raft import core_without
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.client_host import Watches
from ottla.sim.world.disks import CLUSTER_ID
from ottla.sim.world.life import Life
from ottla.sim.world.listener import SimListener
from ottla.sim.world.network import SimNetwork
from ottla.sim.world.observer import VOTING, Observer
from ottla.sim.world.producer_ids import ProducerIds
from ottla.sim.world.request_watch import RequestWatch
from ottla.sim.world.witness import witnessed


class Shared(NamedTuple):
    """What all nodes of a run share."""

    config: RunConfig
    cluster_config: ClusterConfig
    mutants: Mutants
    choices: Choices
    counters: Counters
    addresses: dict[NodeId, tuple[str, int]]
    producer_ids: ProducerIds
    unanswered: Callable[[int], None]
    """Called with how many requests had reached a node when their connection was lost."""


def make_node(
    life: Life,
    shared: Shared,
    observer: Observer,
    *,
    network: SimNetwork,
    factory: Callable[..., ReplicaFactory],
) -> Node:
    """The node of a life. `factory`: what makes its replicas. Raises `CorruptLogError` if the disk
    is damaged."""
    seen = witnessed(
        shared.mutants,
        partial(observer.decided, life),
        partial(observer.committed, life),
        partial(observer.restored, life),
    )
    replicas = factory(
        life.node_id,
        shared.cluster_config,
        store=life.store,
        counters=shared.counters,
        jitter=shared.choices.stream(f"election {life.node_id}"),
        make_core=core_without(shared.mutants),
        make_partition=seen,
        limits=shared.config.log_limits(),
    )

    def listen(host: Host) -> SimListener:
        requests = RequestWatch(life, observer.history, shared.config, shared.unanswered)
        watches = Watches(observer, requests, shared.producer_ids)
        return SimListener(life, host, watches, shared.mutants)

    return node_without(shared.mutants)(
        life.node_id,
        shared.cluster_config,
        cluster_id=CLUSTER_ID,
        nodes=tuple(shared.addresses),
        addresses=shared.addresses,
        store=life.store,
        network=_Transport(life, network, observer),
        listen=listen,
        scheduler=Scheduler(life.clockwork),
        clockwork=life.clockwork,
        factory=replicas,
    )


class _Transport:
    """The node's network, with a point before and after each message."""

    def __init__(self, life: Life, network: SimNetwork, observer: Observer):
        self._life = life
        self._network = network
        self._observer = observer
        self._points = life.points

    def attach(self, node: NodeId, receive: Callable[[NodeId, Any], None]) -> None:
        """Messages go to `receive` from now on, when the node has time for them."""
        life, in_sync = self._life, self._observer.in_sync

        def hear(sender: NodeId, message: Any) -> None:
            if in_sync is not None:
                in_sync.heard(life, message)
            receive(sender, message)

        self._network.attach(node, partial(life.enter, receive if in_sync is None else hear))

    def detach(self, node: NodeId) -> None:
        """Nothing reaches the node any more."""
        self._network.detach(node)

    def send(self, sender: NodeId, to: NodeId, message: object) -> None:
        """Send one message."""
        life, points = self._life, self._points
        if points.armed:
            life.point("send", message)
        if message.__class__ in VOTING:
            self._observer.said(life, message)
        self._network.send(sender, to, message)
        if points.armed:
            life.point("sent", message)
