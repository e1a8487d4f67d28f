"""The port of a dead node is the node's: refused to clients, and to everybody else who binds.

Between a kill and the restart another program (a test beside this one) got it, and the restart
failed.
"""

import errno
import socket
import subprocess
import sys

import pytest

from ottla import Cluster
from ottla.broker.cluster.faults import DiskFault
from ottla.broker.errors import OttlaError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="held on Linux only")

THIEF = """
import socket, sys
for option in (None, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
    thief = socket.socket()
    if option is not None:
        thief.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        thief.bind(("127.0.0.1", int(sys.argv[1])))
        thief.listen()
        print("stolen")
    except OSError:
        print("refused")
"""


def steal(address):
    """What another program comes to, however it asks for the port."""
    command = [sys.executable, "-c", THIEF, str(address[1])]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def knock(address):
    with socket.socket() as client:
        return client.connect_ex(address)


@pytest.mark.slow
def test_between_kill_and_restart_nobody_gets_it():
    with Cluster(nodes=3) as cluster:
        cluster.create_topic("t")
        address = cluster.addresses[2]
        for _ in range(2):
            with socket.create_connection(address, 5):
                cluster.kill(2)
            assert knock(address) == errno.ECONNREFUSED
            assert steal(address) == {"refused"}
            cluster.restart(2)
            assert cluster.addresses[2] == address
            assert knock(address) == 0


def test_nor_that_of_a_node_that_has_failed():
    with Cluster(nodes=1) as cluster:
        cluster.break_disk(1, DiskFault.FAILED)
        with pytest.raises(OttlaError):
            cluster.create_topic("t")
        address = cluster.addresses[1]
        assert knock(address) == errno.ECONNREFUSED
        assert steal(address) == {"refused"}
        cluster.restart(1)
        assert knock(address) == 0


def test_a_stop_lets_go_of_it():
    with Cluster(nodes=3) as cluster:
        cluster.kill(2)
        ports = [port for _, port in cluster.addresses.values()]
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass
