"""A cluster that cannot start leaves nothing behind: no port, no folder that is in use, no thread.

Told apart by how far it came: before every node listens, and after all of them take part.
"""

import socket
import threading

import pytest

from ottla import Cluster, Topic
from ottla.broker.errors import RequestFailedError


def threads_of_clusters():
    return [each.name for each in threading.enumerate() if each.name.startswith("ottla")]


def starts_now(folder, ports):
    """The folder and the ports are free: another cluster can have them."""
    assert threads_of_clusters() == []
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass
    with Cluster(nodes=3, data_dir=folder) as cluster:
        cluster.create_topic("t")
        return cluster.leader("t") in cluster.addresses


def test_a_port_in_use_in_the_middle(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            Cluster(nodes=3, port=port - 1, data_dir=tmp_path).start()
    assert starts_now(tmp_path, [port - 1, port, port + 1])


def test_a_topic_that_cannot_be_made(tmp_path):
    cluster = Cluster(nodes=3, data_dir=tmp_path, topics=[Topic("t", replication_factor=4)])
    with pytest.raises(RequestFailedError, match="INVALID_REPLICATION_FACTOR"):
        cluster.start()
    assert starts_now(tmp_path, [port for _, port in cluster.addresses.values()])
