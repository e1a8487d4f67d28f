"""Authorized operations (KIP-430): what Metadata and DescribeCluster say a client may do.

This broker has no authorization, so a client that asks gets all operations of the kind of resource,
as a bit field: bit n is Kafka's AclOperation n. Apache Kafka 4.3.1 without an authorizer answers
the same.
"""

from __future__ import annotations

from ottla.broker.wire.answers import NOT_ASKED
from ottla.broker.wire.requests import DescribeClusterRequest, MetadataRequest

CLUSTER_OPERATIONS = 8096
"""CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE."""
TOPIC_OPERATIONS = 3576
"""READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS."""


def cluster_operations(request: MetadataRequest | DescribeClusterRequest) -> int:
    """The bit field for the cluster, or `NOT_ASKED` if the request does not ask for it."""
    asked = request.include_cluster_authorized_operations
    return CLUSTER_OPERATIONS if asked else NOT_ASKED


def topic_operations(request: MetadataRequest) -> int:
    """The bit field for each topic, or `NOT_ASKED` if the request does not ask for it."""
    asked = request.include_topic_authorized_operations
    return TOPIC_OPERATIONS if asked else NOT_ASKED
