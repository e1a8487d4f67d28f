"""What a cluster refuses at its start: to be started twice, folders lost or of other clusters.

A folder that is refused stays as it was: whoever brings the right one back goes on. What a start
that died half-way leaves behind is no reason to refuse.
"""

import asyncio
import multiprocessing
import shutil
import socket
from contextlib import closing

import pytest

from log_kit import sync
from ottla import Cluster
from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ConfigError, NodeStateError
from ottla.broker.node.disks import Disks
from ottla.log.lmdb_store import LmdbStore
from ottla.log.note import NOTE


def test_a_cluster_that_runs_is_not_started_again():
    cluster = Cluster(nodes=3)
    with cluster:
        before = cluster.bootstrap_servers
        with pytest.raises(NodeStateError, match="runs already"):
            cluster.start()
        assert cluster.bootstrap_servers == before
        cluster.create_topic("t")
    for _, port in cluster.addresses.values():
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_who_enters_one_that_runs_does_not_stop_it():
    """`with` took the refusal for a start that had failed, and ended what others used."""
    with Cluster(nodes=1, topics=["t"]) as running:
        with pytest.raises(NodeStateError, match="runs already"), running:
            pass
        assert running.leader("t") == 1


def test_nor_on_a_loop_of_its_users():
    async def main():
        async with Cluster(nodes=3) as cluster:
            with pytest.raises(NodeStateError, match="runs already"):
                await cluster.start()
            await cluster.create_topic("t")

    asyncio.run(main())


@pytest.mark.slow
def test_a_stopped_cluster_starts_again(tmp_path):
    cluster = Cluster(nodes=3, data_dir=tmp_path)
    with cluster:
        cluster.create_topic("t")
    with cluster:
        assert list(cluster.describe().topics) == ["t"]


@pytest.mark.slow
def test_a_node_of_another_cluster_is_refused(tmp_path):
    for name in ("one", "other"):
        with Cluster(nodes=3, data_dir=tmp_path / name) as cluster:
            cluster.create_topic(name)
    shutil.rmtree(tmp_path / "one" / "node-2")
    shutil.copytree(tmp_path / "other" / "node-2", tmp_path / "one" / "node-2")
    with pytest.raises(ConfigError, match=r"node-2 is of another cluster .* than node-1"):
        Cluster(nodes=3, data_dir=tmp_path / "one").start()
    with Cluster(nodes=3, data_dir=tmp_path / "other") as cluster:
        assert list(cluster.describe().topics) == ["other"]


@pytest.mark.slow
def test_a_node_whose_folder_is_lost_is_refused(tmp_path):
    """It was taken for a fresh one: it would vote as if it had never voted, and elect who lacks
    what it had acknowledged."""
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("t")
    (tmp_path / "node-2").rename(tmp_path / "lost")
    with pytest.raises(ConfigError, match="node-2 is empty, though node-1 is not"):
        Cluster(nodes=3, data_dir=tmp_path).start()
    assert not (tmp_path / "node-2").exists()
    (tmp_path / "lost").rename(tmp_path / "node-2")
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        assert list(cluster.describe().topics) == ["t"]


def test_so_is_one_whose_folder_is_lost_while_it_is_down(tmp_path):
    """sim-S35: only the start of a whole cluster looked; a node that was started again on nothing
    took part as a fresh one."""
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("t")
        cluster.kill(2)
        (tmp_path / "node-2").rename(tmp_path / "lost")
        with pytest.raises(ConfigError, match="node-2 is empty, though node-1 is not"):
            cluster.restart(2)
        assert not (tmp_path / "node-2").exists()
        (tmp_path / "lost").rename(tmp_path / "node-2")
        cluster.restart(2)
        cluster.leader("t", 0)


@pytest.mark.parametrize("known", [(), (2,), (1, 3)])
def test_a_first_start_that_died_among_its_folders_is_begun_again(tmp_path, known):
    """Every disk knows its cluster, durably, before any node makes a group."""
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster_id = cluster.describe().cluster_id
    (tmp_path / NOTE).unlink()
    for node in (1, 2, 3):
        shutil.rmtree(tmp_path / f"node-{node}")
        if node in known:
            with closing(LmdbStore.open(tmp_path / f"node-{node}", node=node)) as store:
                store.put_meta("cluster-id", cluster_id.encode())
                sync(store)
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("t")
        assert (cluster.describe().cluster_id == cluster_id) == bool(known)


def no_work(_writer):
    raise AssertionError("disks in memory are open at once")


def test_no_group_is_made_before_every_disk_knows_its_cluster():
    disks = Disks((1, 2, 3), None, ClusterConfig())
    asyncio.run(disks.cluster_id(lambda: "chosen", no_work))
    for node in (1, 2, 3):
        asyncio.run(disks.crash(node))
        assert disks.open(node).get_meta("cluster-id") == b"chosen"


def test_leadership_is_not_handed_to_a_dead_node():
    with Cluster(nodes=3) as cluster:
        cluster.create_topic("t")
        dead = cluster.leader("t") % 3 + 1
        cluster.kill(dead)
        with pytest.raises(NodeStateError, match=f"node {dead} is dead"):
            cluster.transfer_leadership("t", 0, dead)


@pytest.mark.parametrize("fault", ["kill", "restart", "pause", "resume", "isolate", "heal"])
@pytest.mark.parametrize("node", [0, 4, "1"])
def test_no_fault_is_done_to_a_node_that_is_not_there(fault, node):
    with (
        Cluster(nodes=3) as cluster,
        pytest.raises(NodeStateError, match=f"there is no node {node!r}; nodes are 1 to 3"),
    ):
        getattr(cluster, fault)(node)


def test_a_forked_child_is_told_that_its_parent_has_the_cluster():
    """It would wait for ever: a fork copies no threads."""
    with Cluster(nodes=3) as cluster:

        def in_the_child():
            with pytest.raises(NodeStateError, match="belongs to the parent process"):
                cluster.create_topic("child")
            cluster.stop()

        child = multiprocessing.get_context("fork").Process(target=in_the_child)
        child.start()
        child.join(20)
        child.kill()
        assert child.exitcode == 0
        cluster.create_topic("parent")
