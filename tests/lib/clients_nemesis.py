"""Faults drawn from a seed, one after the other, against the nodes of a cluster.

| fault | is over when |
|---|---|
| kill | restarted after others lead what it led |
| isolate | healed after others lead what it led |
| pause | resumed after others lead what it led |
| cut | at once, on every node |
| transfer | the other node leads |

Which fault and whom it hits follow from the seed; when, from the cluster's own conditions and from
a pause drawn from the seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

from clients_writers import until
from ottla.broker.errors import ClusterTimeoutError

NODES = (1, 2, 3)
LONGEST_REST = 0.3


class Nemesis:
    """Does faults to `cluster`; `done` is the history, for whoever reads a failure."""

    def __init__(self, cluster: Any, topic: str, partitions: int, seed: int):
        self.cluster = cluster
        self.topic = topic
        self.partitions = partitions
        self.random = Random(seed)
        self.done: list[str] = []

    def strike(self) -> None:
        """One fault, and its end."""
        partition = self.random.randrange(self.partitions)
        fault = self.random.choice((self.kill, self.isolate, self.pause, self.cut, self.transfer))
        node = self.cluster.leader(self.topic, partition)
        self.done.append(f"{fault.__name__} {node} (leader of {partition})")
        fault(node, partition)
        time.sleep(self.random.random() * LONGEST_REST)

    def kill(self, node: int, _: int) -> None:
        """Signal 9 and a restart."""
        self.deposed(node, self.cluster.kill, self.cluster.restart)

    def isolate(self, node: int, _: int) -> None:
        """Cut off from its peers."""
        self.deposed(node, self.cluster.isolate, self.cluster.heal)

    def pause(self, node: int, _: int) -> None:
        """SIGSTOP and SIGCONT."""
        self.deposed(node, self.cluster.pause, self.cluster.resume)

    def cut(self, *_: int) -> None:
        """All client connections."""
        for node in NODES:
            self.cluster.cut_connections(node)

    def transfer(self, node: int, partition: int) -> None:
        """Leadership goes to another replica; that it may be lost to an election is no fault."""
        to = self.random.choice([each for each in NODES if each != node])
        try:
            self.cluster.transfer_leadership(self.topic, partition, to, timeout=2.0)
        except ClusterTimeoutError:
            self.done.append(f"transfer to {to} did not happen")

    def deposed(self, node: int, begin: Callable[[int], None], end: Callable[[int], None]) -> None:
        """A fault that lasts until others lead everything."""
        begin(node)
        until("new leaders", lambda: self.led_without(node))
        time.sleep(self.random.random() * LONGEST_REST)
        end(node)

    def led_without(self, node: int) -> bool:
        """Whether every partition is led by another."""
        described = self.cluster.describe().topics[self.topic]
        return all(each.leader not in {0, node} for each in described)
