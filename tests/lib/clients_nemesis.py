"""Faults drawn from a seed, one after the other, against the nodes of a cluster.

| fault | begins with | is over when |
|---|---|---|
| kill | signal 9 | restarted after others lead what it led |
| isolate | no message to or from its peers | healed after others lead what it led |
| pause | SIGSTOP | resumed after others lead what it led |
| stall | its syncs hang | they go on after others lead what it led |
| fail | its next sync fails | restarted after others lead what it led |
| restart | a clean end and a new life | at once |
| cut | every client connection, on every node | at once |
| transfer | | the other node leads |

Which fault and whom it hits follow from the seed; when, from the cluster's own conditions and from
a pause drawn from the seed. The cluster needs a short `sync_stall_ms`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

from clients_patience import until
from ottla.broker.cluster.faults import DiskFault
from ottla.broker.errors import ClusterTimeoutError

NODES = (1, 2, 3)
LONGEST_REST = 0.3
LEADER_SECONDS = 60.0
"""Only a limit: nobody waits that long for a leader, however busy the machine."""


class Nemesis:
    """Does faults to `cluster`; `done` is the history, for whoever reads a failure."""

    def __init__(self, cluster: Any, topic: str, partitions: int, seed: int):
        self.cluster = cluster
        self.topic = topic
        self.partitions = partitions
        self.random = Random(seed)
        self.done: list[str] = []
        self.deposing: dict[str, tuple[Callable[[int], None], Callable[[int], None]]] = {
            "kill": (cluster.kill, cluster.restart),
            "isolate": (cluster.isolate, cluster.heal),
            "pause": (cluster.pause, cluster.resume),
            "stall": (lambda node: cluster.break_disk(node, DiskFault.STALLED), cluster.mend_disk),
            "fail": (lambda node: cluster.break_disk(node, DiskFault.FAILED), cluster.restart),
        }

    def strike(self) -> None:
        """One fault, and its end."""
        partition = self.random.randrange(self.partitions)
        fault = self.random.choice([*self.deposing, "restart", "cut", "transfer"])
        node = self.cluster.leader(self.topic, partition, timeout=LEADER_SECONDS)
        self.done.append(f"{fault} {node} (leader of {partition})")
        if fault in self.deposing:
            self.depose(node, *self.deposing[fault])
        elif fault == "restart":
            self.cluster.restart(node)
        elif fault == "cut":
            for each in NODES:
                self.cluster.cut_connections(each)
        else:
            self.transfer(node, partition)
        self.rest()

    def rest(self) -> None:
        """A pause drawn from the seed."""
        time.sleep(self.random.random() * LONGEST_REST)

    def transfer(self, node: int, partition: int) -> None:
        """Leadership goes to another replica; that it may be lost to an election is no fault."""
        to = self.random.choice([each for each in NODES if each != node])
        try:
            self.cluster.transfer_leadership(self.topic, partition, to, timeout=2.0)
        except ClusterTimeoutError:
            self.done.append(f"transfer to {to} did not happen")

    def depose(self, node: int, begin: Callable[[int], None], end: Callable[[int], None]) -> None:
        """A fault that lasts until others lead everything."""
        begin(node)
        until("new leaders", lambda: self.led_without(node))
        self.rest()
        end(node)

    def led_without(self, node: int) -> bool:
        """Whether every partition is led by another."""
        described = self.cluster.describe().topics[self.topic]
        return all(each.leader not in {0, node} for each in described)
