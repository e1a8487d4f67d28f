"""Which event loop a cluster runs on where the standard streams are closed."""

import pytest

from broker_children import run_program

CLOSED = """
import os
from ottla import Cluster

said = os.dup(1)
os.close({stream})
with Cluster(nodes=1, topics=["t"]) as cluster:
    cluster.kill(1)
    cluster.restart(1)
    os.write(said, str(cluster.leader("t")).encode())
"""


@pytest.mark.slow
@pytest.mark.parametrize("stream", [0, 1, 2])
def test_a_program_with_a_closed_standard_stream_lives(stream):
    """What uvloop opened got that number, and uvloop ended the process when it closed it."""
    assert run_program(CLOSED.format(stream=stream)) == "1"
