"""`Topic`: a topic as a user asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.broker.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic to create: `replication_factor` None means as many replicas as nodes, up to 3.

    `assignment[p]` names the nodes of partition *p*, its preferred leader first; it takes the place
    of the two numbers.

    >>> from ottla import Cluster, Topic
    >>> with Cluster(nodes=1, topics=[Topic("orders", partitions=2)]) as cluster:
    ...     cluster.leader("orders", 1)
    1
    """

    name: str
    partitions: int = 1
    replication_factor: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    assignment: Sequence[Sequence[int]] | None = None

    @classmethod
    def parse(cls, text: str) -> Topic:
        """Read `NAME`, `NAME:PARTITIONS` or `NAME:PARTITIONS:RF`. Raises `ConfigError`.

        >>> Topic.parse("orders:3:1").partitions
        3
        """
        name, *numbers = text.split(":")
        well_formed = all(each.isdecimal() and int(each) > 0 for each in numbers)
        if not name or len(numbers) > 2 or not well_formed:
            raise ConfigError(f"topic {text!r} is not NAME:PARTITIONS:RF, such as orders:3:3")
        counts = [int(each) for each in numbers]
        return cls(name, counts[0] if counts else 1, counts[1] if len(counts) == 2 else None)

    def command(self, nodes: int, default_factor: int) -> dict[str, Any]:
        """The controller command that creates it on a cluster of `nodes` nodes."""
        assigned = self.assignment is not None
        factor = self.replication_factor or min(default_factor, nodes)
        return {
            "type": "create_topic",
            "name": self.name,
            "partitions": -1 if assigned else self.partitions,
            "replication_factor": -1 if assigned else factor,
            "assignments": [[p, list(each)] for p, each in enumerate(self.assignment or ())]
            or None,
            "configs": dict(self.configs),
        }
