"""What a cluster refuses at its start: to be started twice, and folders of different clusters."""

import asyncio
import shutil
import socket

import pytest

from ottla import Cluster
from ottla.broker.errors import ConfigError, NodeStateError


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


def test_nor_on_a_loop_of_its_users():
    async def main():
        async with Cluster(nodes=3) as cluster:
            with pytest.raises(NodeStateError, match="runs already"):
                await cluster.start()
            await cluster.create_topic("t")

    asyncio.run(main())


def test_a_stopped_cluster_starts_again(tmp_path):
    cluster = Cluster(nodes=3, data_dir=tmp_path)
    with cluster:
        cluster.create_topic("t")
    with cluster:
        assert list(cluster.describe().topics) == ["t"]


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


def test_leadership_is_not_handed_to_a_dead_node():
    with Cluster(nodes=3) as cluster:
        cluster.create_topic("t")
        dead = cluster.leader("t") % 3 + 1
        cluster.kill(dead)
        with pytest.raises(NodeStateError, match=f"node {dead} is dead"):
            cluster.transfer_leadership("t", 0, dead)
