"""Folders that went bad while their nodes were down are judged as a start does it: all together.

The advice of a restart counted the nodes that ran, so that intact folders of others that were down
were no copies; and a folder of another cluster was said to hold nothing.
"""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from folders_kit import (
    cut,
    delete_data,
    empty,
    link_to_nothing,
    make_a_file_of_it,
    make_a_folder_of_its_data,
    refusal,
    remove,
    starts,
)
from ottla import Cluster
from ottla.broker.node.folders import DataFolderError
from ottla.log import lmdb_store, note


@pytest.fixture
def others(tmp_path_factory):
    """A folder of clusters of three and of five nodes, by their sizes."""
    folder = tmp_path_factory.mktemp("others")
    for nodes in (3, 5):
        starts(folder / str(nodes), nodes)
    return folder


def restart_refused(cluster, node):
    """What a restart is refused with; the node is dead, and says the same of itself."""
    with pytest.raises(DataFolderError) as raised:
        cluster.restart(node)
    told = cluster.describe().nodes[node]
    assert (told.state, told.error) == ("dead", str(raised.value))
    assert raised.value.node == node
    return str(raised.value)


def put(source: Path, path: Path) -> None:
    """Another folder in the place of one."""
    shutil.rmtree(path)
    shutil.copytree(source, path)


def remove_files(path: Path) -> None:
    """The folder is there, and nothing in it."""
    for each in path.iterdir():
        each.unlink()


def test_good_folders_of_other_nodes_that_are_down_are_counted(tmp_path):
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("kept")
        cluster.kill(2)
        cluster.kill(3)
        cut(tmp_path / "node-2")
        told = restart_refused(cluster, 2)
        assert "The folders of nodes 1, 3 are good, a majority of 3" in told
        cluster.restart(3)
        assert cluster.leader("kept") != 2
    with Cluster(nodes=3, data_dir=tmp_path, without_nodes=(2,)) as cluster:
        assert sorted(cluster.describe().topics) == ["kept"]


@pytest.mark.slow
def test_bad_folders_of_other_nodes_that_are_down_are_named_and_the_advice_works(tmp_path):
    with Cluster(nodes=5, data_dir=tmp_path) as cluster:
        cluster.create_topic("kept")
        for node in (2, 4):
            cluster.kill(node)
        empty(tmp_path / "node-2")
        remove(tmp_path / "node-4")
        told = restart_refused(cluster, 4)
        assert "node-4 is empty, though node-1 is not" in told
        assert f"node 2, {tmp_path / 'node-2'}: was used, and its data.mdb is empty" in told
        assert "The folders of nodes 1, 3, 5 are good, a majority of 5" in told
        assert "without_nodes=(2, 4)" in told
    with Cluster(nodes=5, data_dir=tmp_path, without_nodes=(2, 4)) as cluster:
        assert sorted(cluster.describe().topics) == ["kept"]


def test_where_no_majority_is_good_nobody_is_told_to_go_on_without(tmp_path):
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        for node in (2, 3):
            cluster.kill(node)
            delete_data(tmp_path / f"node-{node}")
        told = restart_refused(cluster, 2)
        assert "Good folders: 1 of 3. That is not a majority" in told
        assert "--without-node" not in told


def test_the_only_node_has_no_other_copy(tmp_path):
    with Cluster(nodes=1, data_dir=tmp_path) as cluster:
        cluster.kill(1)
        remove_files(tmp_path / "node-1")
        assert "There is no other copy of it" in restart_refused(cluster, 1)


@pytest.mark.parametrize("size", [3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("running", [True, False], ids=["restarted", "killed"])
def test_a_folder_of_another_cluster_is_called_so(tmp_path, others, size, running):
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        if not running:
            cluster.kill(2)
        put(others / str(size) / "node-2", tmp_path / "node-2")
        told = restart_refused(cluster, 2)
        assert f"node 2: {tmp_path / 'node-2'} is of another cluster (" in told
        assert "The folders of nodes 1, 3 are good" in told


KINDS = [
    cut,
    empty,
    delete_data,
    remove,
    remove_files,
    make_a_file_of_it,
    make_a_folder_of_its_data,
    link_to_nothing,
    pytest.param(lambda path: put(path.parent / "node-3", path), id="another_nodes"),
]


@pytest.mark.slow
@pytest.mark.parametrize("damage", KINDS)
def test_a_restart_says_what_a_start_says(tmp_path, damage):
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.kill(2)
        cluster.kill(3)
        damage(tmp_path / "node-2")
        told = restart_refused(cluster, 2)
        assert restart_refused(cluster, 2) == told, "a refusal changes nothing"
    assert str(refusal(tmp_path)) == told


@pytest.mark.slow
@pytest.mark.parametrize("damage", KINDS)
def test_on_a_loop_of_ones_own_it_is_the_same(tmp_path, damage):
    async def main():
        async with Cluster(nodes=3, data_dir=tmp_path) as cluster:
            await cluster.kill(2)
            damage(tmp_path / "node-2")
            with pytest.raises(DataFolderError) as raised:
                await cluster.restart(2)
            return str(raised.value)

    told = asyncio.run(main())
    assert str(refusal(tmp_path)) == told


def test_a_folder_that_may_not_be_read_is_to_be_mended(tmp_path, monkeypatch):
    """Whoever runs as root may read everything: the system says it here."""
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.kill(2)
        cluster.kill(3)
        examine = note.examine

        def refuse(folder):
            if folder.name == "node-2":
                raise PermissionError(13, os.strerror(13), str(folder / "ottla.json"))
            return examine(folder)

        with monkeypatch.context() as patched:
            patched.setattr(lmdb_store, "examine", refuse)
            told = restart_refused(cluster, 2)
        assert "Permission denied" in told
        assert told.endswith("Repair that, or choose another folder")
        cluster.restart(2)


def test_folders_that_are_gone_from_under_running_nodes_are_no_copies(tmp_path):
    with Cluster(nodes=3, data_dir=tmp_path / "logs") as cluster:
        cluster.kill(2)
        for node in (1, 2):
            remove(tmp_path / "logs" / f"node-{node}")
        told = restart_refused(cluster, 2)
        assert "node-2 is empty, though node-3 is not" in told
        assert f"node 1, {tmp_path / 'logs' / 'node-1'}: was used, and its data.mdb is gone" in told
        assert "Good folders: 1 of 3" in told


@pytest.mark.slow
def test_two_restarts_at_once_are_not_in_each_others_way(tmp_path):
    """The one that is refused looks at the folder of the other."""

    async def main():
        async with Cluster(nodes=3, data_dir=tmp_path) as cluster:
            for _ in range(20):
                await cluster.kill(2)
                await cluster.kill(3)
                away = tmp_path / "away"
                (tmp_path / "node-2").rename(away)
                bad, good = await asyncio.gather(
                    cluster.restart(2), cluster.restart(3), return_exceptions=True
                )
                assert "The folders of nodes 1, 3 are good" in str(bad)
                assert good is None
                away.rename(tmp_path / "node-2")
                await cluster.restart(2)

    asyncio.run(main())
