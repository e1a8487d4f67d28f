"""A forked child owns nothing of its parent, and ends without a trace in it.

Children are made as `os.fork`, multiprocessing and preloading servers make them. They kept the
parent's listeners listening, its clients connected and its folders locked, for as long as they
lived; what a child unregistered from its copy of an event loop was gone from the parent's.
"""

import asyncio
import errno
import gc
import multiprocessing
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from broker_children import forked, outcome, run_program
from ottla import Cluster
from ottla.broker.client import Client
from ottla.broker.errors import NodeStateError

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def knock(address):
    with socket.socket() as client:
        return client.connect_ex(address)


def hangs_up(client):
    client.settimeout(5)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def descriptors_to(child, ports):
    """Descriptors of a child that lead to sockets with one of these local ports."""
    process, inodes = Path(f"/proc/{child}"), {}
    for table in ("tcp", "tcp6"):
        for line in (process / "net" / table).read_text().splitlines()[1:]:
            words = line.split()
            inodes[f"socket:[{words[9]}]"] = int(words[1].rpartition(":")[2], 16)
    found = [str(each.readlink()) for each in (process / "fd").iterdir()]
    return [each for each in found if inodes.get(each) in ports]


@pytest.mark.slow
@pytest.mark.parametrize("stored", ["memory", "lmdb"])
def test_what_the_parent_does_works_while_children_live(stored, tmp_path):
    folder = tmp_path if stored == "lmdb" else None
    with Cluster(nodes=3, data_dir=folder) as cluster:
        cluster.create_topic("t")
        address = cluster.addresses[1]
        with socket.create_connection(address, 5) as one, socket.create_connection(address) as two:
            until_connected(cluster, 2)
            with forked() as first, forked() as second:
                time.sleep(0.1)
                if sys.platform == "linux":
                    ports = [port for _, port in cluster.addresses.values()]
                    assert [descriptors_to(each, ports) for each in (first, second)] == [[], []]
                assert cluster.cut_connections(1) == 2
                assert hangs_up(one)
                assert hangs_up(two)
                cluster.kill(1)
                assert knock(address) == errno.ECONNREFUSED
                cluster.restart(1)
                assert knock(address) == 0
                cluster.create_topic("u")
                ports = [port for _, port in cluster.addresses.values()]
                cluster.stop()
                for port in ports:
                    socket.create_server(("127.0.0.1", port)).close()
                with Cluster(nodes=3, data_dir=folder) as again:
                    assert list(again.describe().topics) == (["t", "u"] if folder else [])


def until_connected(cluster, count):
    deadline = time.monotonic() + 5
    while cluster.describe().nodes[1].connections < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def leave_as_a_program_does(cluster):
    """What the end of a child may do to what it inherited."""
    cluster.stop()
    for call in (cluster.describe, cluster.start):
        with pytest.raises(NodeStateError, match="belongs to the parent process"):
            call()
    del call
    del cluster
    gc.collect()


@pytest.mark.slow
def test_a_child_that_tears_everything_down_disturbs_nothing(tmp_path):
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("t")
        with socket.create_connection(cluster.addresses[1], 5) as client:
            until_connected(cluster, 1)
            assert outcome(lambda: leave_as_a_program_does(cluster)) == "None"
            before = cluster.counters.leaderships
            cluster.create_topic("u")
            assert cluster.counters.leaderships == before + 1, "no leader was lost meanwhile"
            client.sendall(b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff")
            assert len(client.recv(4)) == 4


@pytest.mark.slow
def test_a_child_has_clusters_of_its_own_and_children_too(tmp_path):
    def own():
        with Cluster(nodes=3, data_dir=tmp_path / "child") as cluster:
            cluster.create_topic("own")
            with forked():
                address = cluster.addresses[2]
                cluster.kill(2)
                assert knock(address) == errno.ECONNREFUSED
                cluster.restart(2)
            return sorted(cluster.describe().topics)

    with Cluster(nodes=1, data_dir=tmp_path / "parent") as cluster:
        assert outcome(own) == "['own']"
        cluster.create_topic("t")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_child_of_an_async_program_may_close_its_copy_of_everything(loop):
    async def main():
        cluster = Cluster(nodes=3)
        async with cluster as running:
            await running.create_topic("t")
            here = asyncio.get_running_loop()
            mine, _ = socket.socketpair()
            mine.setblocking(False)
            servers = [running.node(node).server for node in running.addresses]

            def tear_down():
                for server in servers:
                    server.stop()
                here.remove_reader(mine)
                return asyncio.new_event_loop().run_until_complete(running.stop())

            here.add_reader(mine, lambda: None)
            outcome(tear_down)
            client = await asyncio.wait_for(Client.connect(*running.addresses[1]), 10)
            await asyncio.wait_for(client.metadata(), 10)
            client.close()
            await running.kill(1)
            await running.restart(1)
            assert await running.leader("t") in running.addresses
            here.remove_reader(mine)
            mine.close()

    if loop == "asyncio":
        asyncio.run(main())
    else:
        uvloop = pytest.importorskip("uvloop", reason="not on this system")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())


CALLS = {
    "describe": lambda running: running.describe(),
    "isolate": lambda running: running.isolate(1),
    "heal": lambda running: running.heal(),
    "pause": lambda running: running.pause(2),
    "cut_connections": lambda running: running.cut_connections(1),
    "node": lambda running: running.node(1),
    "kill": lambda running: running.kill(1).send(None),
    "create_topic": lambda running: running.create_topic("u").send(None),
    "leader": lambda running: running.leader("t").send(None),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_copy_in_a_child_of_an_async_program_refuses_calls(name):
    """Faults "succeeded" without effect, `kill` was a raw OSError, `create_topic` waited."""

    async def main():
        async with Cluster(nodes=1, topics=["t"]) as running:

            def call():
                with pytest.raises(NodeStateError, match="belongs to the parent process"):
                    CALLS[name](running)

            outcome(call)

    asyncio.run(main())


def child_main(bootstrap):
    """Module level: spawned children import it."""
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), 5):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_children_of_multiprocessing(method):
    context = multiprocessing.get_context(method)
    with Cluster(nodes=1) as cluster:
        address = cluster.addresses[1]
        with socket.create_connection(address, 5) as client:
            until_connected(cluster, 1)
            sleeper = context.Process(target=time.sleep, args=(60,))
            sleeper.start()
            try:
                child = context.Process(target=child_main, args=(cluster.bootstrap_servers,))
                child.start()
                child.join(60)
                assert child.exitcode == 0
                cluster.kill(1)
                assert hangs_up(client)
                assert knock(address) == errno.ECONNREFUSED
                cluster.restart(1)
            finally:
                sleeper.kill()
                sleeper.join()


def test_children_that_no_hook_sees_are_hung_up_on_all_the_same():
    """Code that is not Python's forks without a word; what it has copies of is shut down."""
    ctypes = pytest.importorskip("ctypes")
    libc = ctypes.CDLL(None)
    with Cluster(nodes=1) as cluster:
        address = cluster.addresses[1]
        with socket.create_connection(address, 5) as client:
            until_connected(cluster, 1)
            child = ctypes.PyDLL(None).fork()
            if child == 0:
                libc.pause()
            try:
                cluster.kill(1)
                assert hangs_up(client)
                assert knock(address) == errno.ECONNREFUSED
                cluster.restart(1)
                assert knock(address) == 0
            finally:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


WHOLE_PROGRAM = """
import os, sys
from ottla import Cluster

cluster = Cluster(nodes=3, data_dir={folder!r})
with cluster:
    cluster.create_topic("t")
    child = os.fork()
    if child == 0:
        {ends}
    assert os.waitpid(child, 0)[1] == 0
    cluster.create_topic("u")
print("served")
"""


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["sys.exit(0)", "del cluster; sys.exit()", "raise SystemExit"])
@pytest.mark.parametrize("stored", ["memory", "lmdb"])
def test_a_child_that_ends_as_programs_do_says_nothing(ends, stored, tmp_path):
    folder = str(tmp_path) if stored == "lmdb" else None
    program = "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
    assert run_program(program + WHOLE_PROGRAM.format(folder=folder, ends=ends)) == "served"
