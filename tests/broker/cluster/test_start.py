"""A cluster that cannot start leaves nothing behind: no port, no folder that is in use, no thread.

Told apart by how far it came: before every node listens, and after all of them take part. What the
system lacks is called by its name, for whoever starts it may have to give more of that.
"""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from ottla import Cluster, Topic
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.cluster.faults import DiskFault
from ottla.broker.errors import NodeStateError, RequestFailedError


def threads_of_clusters():
    return [each.name for each in threading.enumerate() if each.name.startswith("ottla")]


def three_free_ports():
    """Ports in a row below those that the system gives to whoever connects (Linux: from 32768)."""
    for first in range(20_000 + os.getpid() % 5_000, 32_000, 3):
        ports = (first, first + 1, first + 2)
        if all(is_free(port) for port in ports):
            return ports
    raise AssertionError("no three free ports in a row")


def is_free(port):
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


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
    ports = three_free_ports()
    with (
        socket.create_server(("127.0.0.1", ports[1])),
        pytest.raises(OSError, match="in use"),
    ):
        Cluster(nodes=3, port=ports[0], data_dir=tmp_path).start()
    assert starts_now(tmp_path, ports)


def test_a_topic_that_cannot_be_made(tmp_path):
    cluster = Cluster(nodes=3, data_dir=tmp_path, topics=[Topic("t", replication_factor=4)])
    with pytest.raises(RequestFailedError, match="INVALID_REPLICATION_FACTOR"):
        cluster.start()
    assert starts_now(tmp_path, [port for _, port in cluster.addresses.values()])


async def soon(condition):
    for _ in range(1_000_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("waited in vain")


# On a busy machine, with short election timeouts, a cluster failed to start with NOT_CONTROLLER.
def test_a_controller_that_loses_its_office_over_a_topic_of_the_start():
    async def scenario():
        cluster = AsyncCluster(3, topics=[Topic("t")])
        starting = asyncio.create_task(cluster.start())
        await soon(lambda: any(each.kind == "leader" for each in cluster.events))
        (first,) = (each.node for each in cluster.events if each.kind == "leader")
        runner = cluster.node(first).runner
        controller = runner.hosted_replicas[0]
        core = controller.replica.core
        await soon(lambda: core.commit >= (core.term_start or 0) > 0)
        for node in (1, 2, 3):
            cluster.break_disk(node, DiskFault.STALLED)
        decided = core.last_index
        await soon(lambda: core.last_index > decided)
        controller.replica.step_down(time.monotonic_ns() // 1000)
        runner.wake(controller)
        for node in (1, 2, 3):
            cluster.mend_disk(node)
        await asyncio.wait_for(starting, 20)
        assert await cluster.leader("t") in {1, 2, 3}
        await cluster.stop()

    asyncio.run(scenario())


FULL = """
import resource, sys, time
from ottla import Cluster, OttlaError
with Cluster(nodes=3, data_dir=sys.argv[1]) as cluster:
    for number in range(30):
        cluster.create_topic(f"t{number}")
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))
began = time.monotonic()
try:
    with Cluster(nodes=3, data_dir=sys.argv[1]) as cluster:
        print(cluster.describe())
except OttlaError as error:
    print(error)
print(time.monotonic() - began)
"""


@pytest.mark.slow
def test_a_start_on_a_full_disk_does_not_wait_for_leaders(tmp_path):
    """Two of three nodes had stopped, and the start waited on for 30 s."""
    pytest.importorskip("resource", reason="a system without limits of files")
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "data"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told, took = done.stdout.splitlines()
    assert told.startswith("no majority of the nodes could start: node ")
    assert f"{tmp_path}/data/node-" in told
    assert float(took) < 20


FEW = """
import resource
from ottla import Cluster
import os
{limit}
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
try:
    with Cluster(nodes=3) as cluster:
        print(cluster.bootstrap_servers.count(":"))
except OSError as error:
    print(error)
"""


LEFT = 'limit = len(os.listdir("/proc/self/fd")) - 1 + {}'


@pytest.mark.slow
@pytest.mark.parametrize(
    "limit", [*(f"limit = {each}" for each in (12, 16)), *(LEFT.format(left) for left in (1, 4, 9))]
)
def test_too_few_descriptors_are_no_fault_of_the_address(limit):
    """It was "host is '127.0.0.1'; Too many open files; name an address of this machine". With none
    left, uvloop's first loop ended the process."""
    pytest.importorskip("resource", reason="a system without limits of descriptors")
    done = subprocess.run(
        [sys.executable, "-c", FEW.format(limit=limit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Too many open files" in done.stdout
    assert "raise the limit of open files (ulimit -n)" in done.stdout
    assert "address" not in done.stdout


def test_a_loop_that_was_closed_under_a_cluster_is_named():
    """It was "the cluster runs already; stop it", and `stop` did nothing."""
    cluster = Cluster(nodes=1)
    loop = asyncio.new_event_loop()
    running = loop.run_until_complete(cluster.__aenter__())
    loop.close()
    with pytest.raises(NodeStateError, match="was closed while the cluster ran"):
        cluster.start()
    with pytest.raises(NodeStateError, match="was closed while the cluster ran"):
        asyncio.run(running.stop())
