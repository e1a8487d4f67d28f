"""Data folders that are damaged or lost: who says so, what is advised, and how to go on without.

One flipped bit in one of three folders was an error that named no node, that `except OttlaError`
did not catch, and that advised to throw all three away.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from folders_kit import (
    cut,
    delete_data,
    empty,
    flip,
    link_to_nothing,
    make_a_file_of_it,
    make_a_folder_of_its_data,
    make_a_folder_of_its_lock,
    make_a_folder_of_lmdbs_lock,
    refusal,
    remove,
    starts,
)
from ottla import Cluster
from ottla.broker.errors import ConfigError, NodeStateError
from ottla.broker.node.folders import DataFolderError
from ottla.log.note import DATA, NOTE


@pytest.fixture
def used(tmp_path):
    """The folder of three nodes with a topic in it."""
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("kept", partitions=2)
    return tmp_path


def link_to_another(path):
    shutil.rmtree(path)
    path.symlink_to("node-1")


DAMAGES = [
    empty,
    cut,
    flip,
    delete_data,
    remove,
    make_a_file_of_it,
    make_a_folder_of_its_data,
    make_a_folder_of_its_lock,
    make_a_folder_of_lmdbs_lock,
    link_to_nothing,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_bad_folder_of_three_is_named_and_a_majority_is_good(used, damage):
    damage(used / "node-2")
    error = refusal(used)
    assert (error.node, error.folder) == (2, used / "node-2")
    assert "node 2" in str(error)
    assert str(used / "node-2") in str(error)
    assert "The folders of nodes 1, 3 are good, a majority of 3" in str(error)
    assert "ottla up --without-node 2, in Python Cluster(without_nodes=(2,))" in str(error)
    assert str(refusal(used)) == str(error), "a refusal changes nothing"


@pytest.mark.parametrize("damage", DAMAGES)
def test_two_bad_folders_of_three_leave_no_majority(used, damage):
    for node in (1, 3):
        damage(used / f"node-{node}")
    error = refusal(used)
    assert error.node == 1
    assert "Good folders: 1 of 3. That is not a majority" in str(error)
    assert "--without-node" not in str(error)


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_only_folder_has_no_other_copy(tmp_path, damage):
    """That of one node, too: the whole cluster's folder remembers that it was used."""
    with Cluster(nodes=1, data_dir=tmp_path) as cluster:
        cluster.create_topic("kept")
    damage(tmp_path / "node-1")
    assert "There is no other copy of it" in str(refusal(tmp_path, nodes=1))


@pytest.mark.slow
def test_two_folders_in_each_others_place_are_refused_and_go_back(used):
    def swap():
        (used / "node-1").rename(used / "away")
        (used / "node-3").rename(used / "node-1")
        (used / "away").rename(used / "node-3")

    swap()
    assert "belongs to node 3, not 1" in str(refusal(used))
    swap()
    assert starts(used) == ["kept"]


def test_a_folder_that_is_another_nodes_by_a_link_is_refused(used):
    link_to_another(used / "node-2")
    assert "in use" in str(refusal(used))


def test_a_folder_of_another_cluster_is_the_odd_one_wherever_it_lies(used, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    starts(other)
    shutil.rmtree(used / "node-1")
    shutil.copytree(other / "node-1", used / "node-1")
    (used / NOTE).unlink()
    assert refusal(used).node == 1


def test_data_of_another_cluster_is_refused_in_the_only_folder(tmp_path):
    for name in ("one", "other"):
        starts(tmp_path / name, nodes=1)
    shutil.copy(tmp_path / "other" / "node-1" / DATA, tmp_path / "one" / "node-1" / DATA)
    assert "of 'cluster-id', and ottla.json says" in str(refusal(tmp_path / "one", nodes=1))
    shutil.rmtree(tmp_path / "one" / "node-1")
    shutil.copytree(tmp_path / "other" / "node-1", tmp_path / "one" / "node-1")
    assert "is of another cluster" in str(refusal(tmp_path / "one", nodes=1))


def test_a_parent_that_is_no_folder_is_a_plain_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="it is a file; name a folder"):
        Cluster(nodes=1, data_dir=tmp_path / "file").start()
    with pytest.raises(ConfigError, match="No such file"):
        Cluster(nodes=1, data_dir="/proc/nowhere").start()


# ---- going on without


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_majority_goes_on_without_a_bad_folder_and_says_so(used, damage, caplog):
    damage(used / "node-2")
    with Cluster(nodes=3, data_dir=used, without_nodes=(2,)) as cluster:
        cluster.create_topic("later", replication_factor=2)
        assert sorted(cluster.describe().topics) == ["kept", "later"]
        assert 2 not in cluster.describe().topics["later"][0].replicas
        node = cluster.describe().nodes[2]
        assert node.state == "left out"
        assert "waits for membership change" in node.error
        assert "node 2 at  is left out: node 2 was left out" in str(cluster.describe())
        assert sorted(cluster.addresses) == [1, 3]
        assert [each.node for each in cluster.events if each.kind == "left out"] == [2]
        for call in (cluster.kill, cluster.restart, cluster.pause, cluster.isolate):
            with pytest.raises(NodeStateError, match="left out at the start"):
                call(2)
    assert "node 2 was left out at the start" in caplog.text


@pytest.mark.slow
def test_a_folder_that_comes_back_takes_part_again(used):
    (used / "node-2").rename(used / "away")
    with Cluster(nodes=3, data_dir=used, without_nodes=[2]) as cluster:
        cluster.create_topic("later")
    (used / "away").rename(used / "node-2")
    with Cluster(nodes=3, data_dir=used) as cluster:
        assert sorted(cluster.describe().topics) == ["kept", "later"]
        assert cluster.describe().nodes[2].state == "running"


@pytest.mark.slow
def test_a_partition_that_lies_only_on_who_is_left_out_holds_nobody_up(used):
    with Cluster(nodes=3, data_dir=used) as cluster:
        cluster.create_topic("there", assignment=[[2], [1]])
    empty(used / "node-2")
    with Cluster(nodes=3, data_dir=used, without_nodes=(2,)) as cluster:
        assert [each.leader for each in cluster.describe().topics["there"]] == [0, 1]


@pytest.mark.parametrize(
    ("without", "told"),
    [
        ((1, 2), "1 of 3 nodes are not a majority"),
        ((4,), "there is no node 4; nodes are 1, 2, 3"),
        ((True,), "there is no node True"),
        (("2",), "there is no node '2'"),
        ((1, 1), "without_nodes names node 1 twice; name each node once"),
    ],
)
def test_who_can_not_be_left_out(used, without, told):
    with pytest.raises(ConfigError, match=told):
        Cluster(nodes=3, data_dir=used, without_nodes=without)


def test_nobody_is_left_out_of_a_new_cluster_or_of_one_in_memory(tmp_path):
    with pytest.raises(ConfigError, match="is new; a cluster begins with all its nodes"):
        Cluster(nodes=3, data_dir=tmp_path, without_nodes=(3,)).start()
    with pytest.raises(ConfigError, match="without_nodes leaves out folders of a data_dir"):
        Cluster(nodes=3, without_nodes=(3,))


@pytest.mark.slow
def test_an_emptied_folder_is_never_taken_for_a_fresh_voter(used):
    """It could vote for a leader that lacks what this node had acknowledged. Also not after a start
    without it, which goes on and makes the others forget nothing."""
    shutil.rmtree(used / "node-2")
    with Cluster(nodes=3, data_dir=used, without_nodes=(2,)) as cluster:
        cluster.create_topic("later")
    (used / "node-2").mkdir()
    assert refusal(used).node == 2


# ---- while the cluster runs


@pytest.mark.slow
@pytest.mark.parametrize("damage", [each for each in DAMAGES if each is not flip])
def test_a_folder_that_went_bad_while_its_node_was_down(used, damage):
    with Cluster(nodes=3, data_dir=used) as cluster:
        cluster.kill(2)
        damage(used / "node-2")
        with pytest.raises(DataFolderError) as raised:
            cluster.restart(2)
        assert raised.value.node == 2
        assert "The folders of nodes 1, 3 are good" in str(raised.value)
        node = cluster.describe().nodes[2]
        assert (node.state, node.error) == ("dead", str(raised.value))
        cluster.create_topic("later")


@pytest.mark.slow
def test_a_folder_that_came_back_while_its_node_was_down(used):
    with Cluster(nodes=3, data_dir=used) as cluster:
        cluster.kill(2)
        (used / "node-2").rename(used / "away")
        with pytest.raises(DataFolderError):
            cluster.restart(2)
        (used / "away").rename(used / "node-2")
        cluster.restart(2)
        assert cluster.describe().nodes[2].error == ""


@pytest.mark.parametrize("name", ["\udcff", b"\xff"], ids=ascii)
def test_a_name_that_is_no_utf8_is_refused_when_the_cluster_is_made(name, tmp_path):
    """It was an UnicodeEncodeError of the start."""
    folder = os.fsencode(tmp_path) + b"/" + name if isinstance(name, bytes) else tmp_path / name
    with pytest.raises(ConfigError, match=r"data_dir is .*; a name in UTF-8 is wanted"):
        Cluster(nodes=1, data_dir=folder)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_place_where_no_folder_can_be_made_is_to_be_mended():
    """It was told to bring a folder back that there had never been, too."""
    with pytest.raises(DataFolderError, match=r"Repair that, or choose another folder$"):
        Cluster(nodes=3, data_dir="/proc/nowhere").start()


@pytest.mark.slow
def test_a_disk_without_room_is_to_be_mended(tmp_path):
    """It was told to bring a folder back that there had never been."""
    script = (
        "import resource, signal, sys\n"
        "from ottla import Cluster, OttlaError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try:\n"
        "    Cluster(nodes=1, data_dir=sys.argv[1]).start()\n"
        "except OttlaError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "logs")],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("DataFolderError node 1, "), done.stderr
    assert "no room on the disk" in done.stdout
    assert done.stdout.endswith("Repair that, or choose another folder\n")


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("nowhere")])
def test_what_lies_in_the_place_of_a_folder_and_is_none_is_called_so(used, make):
    """It was "File exists"."""
    shutil.rmtree(used / "node-2")
    make(used / "node-2")
    told = str(refusal(used))
    assert told.startswith(f"node 2, {used / 'node-2'}: it is not a folder (")
