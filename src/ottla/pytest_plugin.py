"""What `pip install ottla` gives a pytest suite: the fixture `ottla_cluster`.

pytest imports this module at the start of every run where Ottla is installed, so nothing heavy
is imported before a test asks for a cluster: `ottla.Cluster` resolves on first use.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import ottla

if TYPE_CHECKING:
    from ottla.broker.cluster.cluster import Cluster


@pytest.fixture
def ottla_cluster() -> "Iterator[Cluster]":
    """A cluster of three nodes for one test: fresh, and gone with the test."""
    with ottla.Cluster(nodes=3) as cluster:
        yield cluster
