"""Data folders for tests of their damage: what can happen to one, and what a start says of it."""

import os
import shutil
from pathlib import Path

import pytest

from ottla import Cluster, OttlaError
from ottla.broker.node.folders import DataFolderError
from ottla.log.note import DATA, LMDB_LOCK


def refusal(folder: Path, nodes: int = 3, without_nodes: tuple[int, ...] = ()) -> DataFolderError:
    """What a start on the folder is refused with."""
    with pytest.raises(DataFolderError) as raised:
        Cluster(nodes=nodes, data_dir=folder, without_nodes=without_nodes).start()
    assert isinstance(raised.value, OttlaError)
    assert "\n" not in str(raised.value)
    return raised.value


def starts(folder: Path, nodes: int = 3) -> list[str]:
    """Start on the folder, and end; the topics that it held."""
    with Cluster(nodes=nodes, data_dir=folder) as cluster:
        return sorted(cluster.describe().topics)


def empty(path: Path) -> None:
    """Its data has no bytes any more."""
    os.truncate(path / DATA, 0)


def cut(path: Path) -> None:
    """Its data ends after three pages."""
    os.truncate(path / DATA, 3 * 4096)


def flip(path: Path) -> None:
    """A byte of an entry is another one."""
    data = (path / DATA).read_bytes()
    (path / DATA).write_bytes(data.replace(b"kept", b"lept"))


def delete_data(path: Path) -> None:
    """Its data is gone."""
    (path / DATA).unlink()


def remove(path: Path) -> None:
    """The whole folder is gone."""
    shutil.rmtree(path)


def make_a_file_of_it(path: Path) -> None:
    """A file lies in its place."""
    shutil.rmtree(path)
    path.touch()


def make_a_folder_of_its_data(path: Path) -> None:
    """A folder lies in the place of its data."""
    (path / DATA).unlink()
    (path / DATA).mkdir()


def make_a_folder_of_its_lock(path: Path) -> None:
    """A folder lies in the place of our lock."""
    (path / "LOCK").unlink()
    (path / "LOCK").mkdir()


def make_a_folder_of_lmdbs_lock(path: Path) -> None:
    """A folder lies in the place of LMDB's lock."""
    (path / LMDB_LOCK).unlink(missing_ok=True)
    (path / LMDB_LOCK).mkdir()


def link_to_nothing(path: Path) -> None:
    """A link that leads nowhere lies in its place."""
    shutil.rmtree(path)
    path.symlink_to("nothing")
