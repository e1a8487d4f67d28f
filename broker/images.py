"""The cluster as its controller decided it, and who leads: values that everybody may hold."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ottla.log.types import Term
from ottla.raft.types import GroupId, NodeId


class PartitionImage(NamedTuple):
    """One partition as the controller decided it."""

    partition: int
    group: GroupId
    replicas: tuple[NodeId, ...]
    """Voters; the first is the preferred leader."""


class TopicImage(NamedTuple):
    """One topic as the controller decided it."""

    name: str
    topic_id: bytes
    """16 bytes, derived from the controller's log index."""
    partitions: tuple[PartitionImage, ...]
    configs: Mapping[str, str] = MappingProxyType({})


class BrokerImage(NamedTuple):
    """Where clients reach a node."""

    node: NodeId
    host: str
    port: int


class LeaderImage(NamedTuple):
    """Who leads a partition as this node knows it; `leader` 0 when nobody is known to."""

    leader: NodeId
    epoch: Term
    in_sync: tuple[NodeId, ...]
