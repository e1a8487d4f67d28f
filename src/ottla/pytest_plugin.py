"""The fixture `ottla_cluster`, which every pytest suite has once Ottla is installed.

pytest imports this module at the start of every run. So nothing heavy is imported before a test
asks for a cluster: `ottla.Cluster` is imported on first use.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import ottla

if TYPE_CHECKING:
    from ottla.broker.cluster.cluster import Cluster


@pytest.fixture
def ottla_cluster() -> "Iterator[Cluster]":
    """A new cluster of three nodes for one test; it is stopped after the test."""
    with ottla.Cluster(nodes=3) as cluster:
        yield cluster
