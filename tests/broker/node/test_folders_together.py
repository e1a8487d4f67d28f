"""All folders of a start are judged at once, with the note of the whole cluster beside them.

Each kind of damage had a pass of its own, so that what one refusal advised was refused by the next;
and a note that was there and could not be read was as good as none: a new cluster began.
"""

import os
import shutil
from itertools import product

import pytest

from folders_kit import (
    empty,
    make_a_file_of_it,
    make_a_folder_of_its_data,
    refusal,
    remove,
    starts,
)
from ottla import Cluster
from ottla.broker.errors import ConfigError
from ottla.log.note import NOTE


def another_clusters(path):
    """Nodes' folders of another cluster, of as many nodes."""
    other = path.parent.parent / "other"
    if not other.exists():
        starts(other, nodes=5)
    shutil.rmtree(path)
    shutil.copytree(other / path.name, path)


WAYS = [remove, empty, another_clusters, make_a_folder_of_its_data, make_a_file_of_it]


@pytest.fixture
def used(tmp_path):
    with Cluster(nodes=3, data_dir=tmp_path) as cluster:
        cluster.create_topic("kept")
    return tmp_path


@pytest.fixture
def five(tmp_path):
    with Cluster(nodes=5, data_dir=tmp_path / "five") as cluster:
        cluster.create_topic("kept")
    return tmp_path / "five"


QUICK = [(remove, empty, True), (another_clusters, remove, True), (empty, another_clusters, False)]
PAIRS = [
    pytest.param(*each, marks=() if each in QUICK else pytest.mark.slow)
    for each in product(WAYS, WAYS, [True, False])
]


@pytest.mark.parametrize(("one", "other", "noted"), PAIRS)
def test_all_bad_folders_are_named_at_once_and_the_advice_works(five, one, other, noted):
    one(five / "node-1")
    other(five / "node-5")
    if not noted:
        (five / NOTE).unlink()
    told = str(refusal(five, nodes=5))
    assert f"{five / 'node-1'}" in told
    assert f"{five / 'node-5'}" in told
    assert "The folders of nodes 2, 3, 4 are good, a majority of 5" in told
    assert "(ottla up --without-node 1 --without-node 5, in Python Cluster(without_nodes=" in told
    half = str(refusal(five, nodes=5, without_nodes=(5,)))
    assert "ottla up --without-node 1 --without-node 5, in" in half, "with those already given"
    with Cluster(nodes=5, data_dir=five, without_nodes=(1, 5)) as cluster:
        assert sorted(cluster.describe().topics) == ["kept"]


def test_all_are_named_where_no_majority_is_good_too(five):
    for node, damage in ((1, remove), (3, another_clusters), (5, empty)):
        damage(five / f"node-{node}")
    told = str(refusal(five, nodes=5))
    assert all(str(five / f"node-{node}") in told for node in (1, 3, 5))
    assert "Good folders: 2 of 5. That is not a majority" in told
    assert "--without-node" not in told
    told = str(refusal(five, nodes=5, without_nodes=(5,)))
    assert "Good folders: 2 of 5 (not looked at: nodes 5, left out). That is not a majority" in told


def test_two_folders_of_another_cluster_are_both_named(used, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    starts(other)
    for name in ("node-2", "node-3"):
        shutil.rmtree(used / name)
        shutil.copytree(other / name, used / name)
    told = str(refusal(used))
    assert all(f"{used / name} is of another cluster" in told for name in ("node-2", "node-3"))
    assert "Good folders: 1 of 3" in told


# ---- the note of the whole folder

NO_NOTES = [b"", b"{", b'{"cluster":null}', b"[]", b"\xff\x00" * 500, b"[" * 9000]


@pytest.mark.parametrize("note", NO_NOTES, ids=lambda note: ascii(note[:20]))
@pytest.mark.parametrize("nodes", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("lose", [shutil.rmtree, lambda path: [*map(os.remove, path.iterdir())]])
def test_a_note_that_cannot_be_read_says_that_there_was_a_cluster(tmp_path, note, nodes, lose):
    """A new, empty cluster began without a word."""
    starts(tmp_path, nodes)
    for node in range(nodes):
        lose(tmp_path / f"node-{node + 1}")
    (tmp_path / NOTE).write_bytes(note)
    told = str(refusal(tmp_path, nodes))
    assert "is empty, though the cluster was used: its note, ottla.json, is there" in told
    assert "or start a new cluster in another data_dir" in told
    assert (tmp_path / NOTE).read_bytes() == note


@pytest.mark.parametrize("note", NO_NOTES, ids=lambda note: ascii(note[:20]))
def test_beside_good_folders_it_is_written_again(used, note, caplog):
    whole = (used / NOTE).read_bytes()
    (used / NOTE).write_bytes(note)
    assert starts(used) == ["kept"]
    assert f"{used}: its note, ottla.json, could not be read" in caplog.text
    assert (used / NOTE).read_bytes() == whole


def test_what_is_no_file_in_the_place_of_the_note_is_in_the_way(used):
    (used / NOTE).unlink()
    (used / NOTE).mkdir()
    with pytest.raises(ConfigError, match=r"ottla.json is not a file; restore it, or delete it"):
        Cluster(nodes=3, data_dir=used).start()
    (used / NOTE).rmdir()
    assert starts(used) == ["kept"]
