"""What `pip install ottla` gives a pytest suite: the fixture `ottla_cluster`.

pytest imports this module at the start of every run in an environment where Ottla is installed,
so it imports nothing heavy before a test asks for a cluster.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.broker.cluster import Cluster


@pytest.fixture
def ottla_cluster() -> "Iterator[Cluster]":
    """A cluster of three nodes for one test: fresh, and gone with the test."""
    from ottla import Cluster  # noqa: PLC0415 - heavy, and most tests of a suite never ask for it

    with Cluster(nodes=3) as cluster:
        yield cluster
