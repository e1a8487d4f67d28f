"""Whatever others do to its ports, an idempotent producer goes on and loses nothing.

Each nuisance runs while the producer writes; it must make progress during it and after it, and the
audit at the end must find everything. What a node may spend on a nuisance is bounded: the process
grows by no more than `GROWTH_MIB`.
"""

import random
import resource
import socket
import struct
import time

import pytest

from clients_audit import audit
from clients_confluent import ConfluentKit
from clients_kits import Record
from clients_patience import until
from clients_writers import ConfluentWriter, progress, writing
from ottla import Cluster, Topic

pytestmark = pytest.mark.clients
GROWTH_MIB = 192
IDLE = 1000
BIG = 16 << 20


@pytest.fixture(scope="module")
def cluster():
    topics = [Topic("t", assignment=[[1, 2, 3], [2, 3, 1]]), Topic("big", assignment=[[1, 2, 3]])]
    with Cluster(nodes=3, topics=topics) as running:
        yield running


@pytest.fixture(scope="module")
def written(cluster):
    writers: list[ConfluentWriter] = []
    yield writers
    audit(cluster, "t", writers)


@pytest.fixture
def writer(cluster, request, written):
    name = request.node.name.replace(":", "-")
    running = ConfluentWriter(name, cluster.bootstrap_servers, "t", 2, strict=True)
    with writing(running):
        before = resident()
        yield running
        progress([running])
    assert not running.failed
    assert not running.problems
    assert resident() - before < GROWTH_MIB << 20
    written.append(running)


def resident():
    with open("/proc/self/statm", encoding="ascii") as numbers:  # noqa: PTH123
        return int(numbers.read().split()[1]) * resource.getpagesize()


def connect(cluster, node=1):
    return socket.create_connection(cluster.addresses[node], timeout=10)


def framed(body):
    return struct.pack(">i", len(body)) + body


def fetch(topic, at, length):
    """Fetch v4 of one partition: header v1, then the body."""
    name = topic.encode()
    head = struct.pack(">hhih", 1, 4, 1, -1)
    body = struct.pack(">iiiib", -1, 1000, 1, length, 0)
    topics = struct.pack(">ih", 1, len(name)) + name
    return framed(head + body + topics + struct.pack(">iiqi", 1, 0, at, length))


def closed(link):
    try:
        while link.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


def test_random_bytes(cluster, writer):
    rng = random.Random(9)
    for round_ in range(150):
        with connect(cluster, round_ % 3 + 1) as link:
            link.sendall(rng.randbytes(rng.randrange(1, 400)))
        if round_ % 50 == 0:
            progress([writer])


@pytest.mark.parametrize("length", [2**31 - 1, -1, 0, 4, -(2**31), 104_857_601])
def test_frame_lengths_that_cannot_be(cluster, writer, length):
    assert writer.is_alive()
    with connect(cluster) as link:
        link.sendall(struct.pack(">i", length) + b"\0\3\0\0")
        assert closed(link)


def test_half_frames_and_slow_clients(cluster, writer):
    links = [connect(cluster, number % 3 + 1) for number in range(60)]
    whole = framed(struct.pack(">hhih", 18, 0, 7, -1))
    for at in range(len(whole) - 1):
        for link in links:
            link.sendall(whole[at : at + 1])
    progress([writer], 50)
    for link in links[::2]:
        link.close()
    for link in links[1::2]:
        link.sendall(whole[-1:])
        assert link.recv(8)[4:] == struct.pack(">i", 7)
        link.close()


@pytest.mark.slow
def test_a_thousand_idle_connections(cluster, writer):
    links = [connect(cluster, number % 3 + 1) for number in range(IDLE)]
    until(
        "open connections",
        lambda: sum(each.connections for each in cluster.describe().nodes.values()) >= IDLE,
    )
    progress([writer], 200)
    for link in links:
        link.close()


@pytest.mark.slow
def test_a_client_that_fetches_megabytes_and_never_reads(cluster, writer):
    kit = ConfluentKit()
    records = [Record(bytes([number]) * 900_000) for number in range(BIG // 900_000)]
    kit.produce(cluster.bootstrap_servers, "big", records)
    before = resident()
    links = [connect(cluster) for _ in range(8)]
    for link in links:
        link.settimeout(0.2)
        ask(link, 200)
    progress([writer], 300)
    assert resident() - before < GROWTH_MIB << 20, "answers nobody reads pile up"
    for link in links:
        link.close()


def ask(link, times):
    """Send fetches for as long as the node takes them."""
    for _ in range(times):
        try:
            link.sendall(fetch("big", 0, BIG))
        except TimeoutError:
            return


@pytest.mark.slow
def test_connections_that_come_and_go(cluster, writer):
    end = time.monotonic() + 1
    while time.monotonic() < end:
        connect(cluster).close()
    progress([writer])
