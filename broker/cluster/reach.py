"""`Reach`: the addresses at which the nodes of one cluster listen, and those that clients get.

Ports are taken when the cluster starts and freed when it stops. In between they outlive nodes.
Addresses stay known after the cluster has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from ottla.broker.arguments.addresses import Address, Advertised, AdvertisedAs, join, reachable
from ottla.broker.errors import NodeStateError
from ottla.broker.wire.host import Listener
from ottla.broker.wire.ports import Port
from ottla.raft.types import NodeId

OpenPort = Callable[[str, int], Port]


class Reach:
    """See the module's docstring. `port` is that of node 1, node 2 has the next; 0: free ports."""

    def __init__(
        self,
        open_port: OpenPort,
        host: str,
        port: int,
        *,
        nodes: Sequence[NodeId],
        advertised: Advertised | None,
    ):
        self._open_port = open_port
        self._host = host
        self._port = port
        self._advertised_as = AdvertisedAs(advertised, nodes)
        self._ports: dict[NodeId, Port] = {}
        self._listening: dict[NodeId, Address] = {}
        self.told: dict[NodeId, Address] = {}
        """The addresses that clients get."""
        if port:
            self._advertised_as.check({node: (host, port + node - 1) for node in nodes})

    async def listen(self, node: NodeId, listener: Listener) -> None:
        """Have a node listen on its port, which is taken the first time. Raises `OSError`."""
        port = self._ports.get(node)
        if port is None:
            number = self._port + node - 1 if self._port else 0
            port = self._ports[node] = self._open_port(self._host, number)
        await listener.start(port)
        host, number = port.address
        self._listening[node] = reachable(host), number
        self.told[node] = self._advertised_as.of(node, port.address)
        self._advertised_as.check({each: taken.address for each, taken in self._ports.items()})

    def close(self) -> None:
        """Free all ports."""
        with ExitStack() as steps:
            steps.callback(self._ports.clear)
            for port in self._ports.values():
                steps.callback(port.close)

    def listening(self) -> Mapping[NodeId, Address]:
        """Where each node listens, for clients on this machine. Raises `NodeStateError`."""
        self.check()
        return dict(self._listening)

    def bootstrap_servers(self) -> str:
        """All nodes at their advertised addresses. Raises `NodeStateError`."""
        self.check()
        return ",".join(map(join, self.told.values()))

    def check(self) -> None:
        """Raises `NodeStateError` before the first start, when addresses are not known."""
        if not self._listening:
            raise NodeStateError(
                "the cluster has not been started, so it has no addresses: "
                "use `with Cluster() as cluster`, or start()"
            )
