"""`LmdbView`: a folder as somebody sees it who only reads, at rest and while it is written.

The writer is another process, as it has to be: LMDB does not open a folder twice in one. What is
seen is compared with what was written, index by index.
"""

import os
import subprocess
import sys

import pytest

import log_kit as kit
from ottla.log import keys
from ottla.log.errors import CompactedError, FormatError
from ottla.log.lmdb_store import LmdbStore, LmdbView
from ottla.log.store import Write
from ottla.raft.types import HardState

WRITER = """
import sys
import log_kit as kit
from ottla.log.lmdb_store import LmdbStore
from ottla.log.store import Write
from ottla.raft.types import HardState
store = LmdbStore.open(sys.argv[1], node=1, first_map_bytes=1 << 20, zero_step_bytes=0)
first = 1
for line in sys.stdin:
    run = [kit.batch_entry(first + n, values=[b"x" * 50_000]) for n in range(int(line))]
    store.append([Write(1, hard_state=HardState(1, 0), first=first, entries=run)])
    kit.sync(store)
    first += len(run)
    print("written", flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "node"
    store = LmdbStore.open(path, node=1, **kit.SMALL)
    entries = [kit.batch_entry(index, values=[b"x" * 9000]) for index in range(1, 41)]
    store.append([Write(1, hard_state=HardState(3, 2), first=1, entries=entries)])
    store.append([Write(1, snapshot=kit.snapshot_at(10), compact_to=10)])
    kit.sync(store)
    store.close()
    return path


def indexes(entries):
    return [entry.index for entry in entries]


def test_everything_durable_is_seen(folder):
    view = LmdbView(folder)
    (group,) = view.groups()
    assert (group.group, group.first_index, group.last_index) == (1, 11, 40)
    state = view.state(1)
    assert state is not None
    assert state.hard_state == HardState(3, 2)
    snapshot = view.snapshot(1)
    assert snapshot is not None
    assert snapshot.data == b"state"
    assert indexes(view.entries(1, 11, 1 << 30)) == list(range(11, 41))
    assert indexes(view.entries(1, 20, 20_000)) == [20, 21]
    assert indexes(view.entries(1, 40, 1)) == [40]
    view.close()


def test_what_is_not_there_is_nothing(folder):
    view = LmdbView(folder)
    assert view.entries(1, 41, 1000) == []
    assert view.entries(2, 1, 1000) == []
    assert view.state(2) is None
    assert view.snapshot(2) is None
    with pytest.raises(CompactedError):
        view.entries(1, 10, 1000)
    view.close()


def test_a_folder_of_something_else_is_refused_in_one_line(folder, tmp_path):
    with pytest.raises(FormatError, match="holds no log"):
        LmdbView(tmp_path)
    kit_folder = tmp_path / "other"
    kit_folder.mkdir()
    (kit_folder / "data.mdb").write_bytes(b"no" * 5000)
    with pytest.raises(FormatError, match="cannot be read"):
        LmdbView(kit_folder)
    kit.change_lmdb(folder, keys.FORMAT_KEY, b"9")
    with pytest.raises(FormatError, match="format 9, this program reads 1"):
        LmdbView(folder)


def test_a_view_follows_another_process_that_writes_and_makes_its_map_larger(tmp_path):
    path = tmp_path / "node"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert writer.stdin is not None
    assert writer.stdout is not None
    view, written = None, 0
    for count in (1, 5, 100):
        writer.stdin.write(f"{count}\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "written\n"
        written += count
        view = view or LmdbView(path)
        assert indexes(view.entries(1, 1, 1 << 30)) == list(range(1, written + 1))
    assert view is not None
    view.close()
    writer.communicate(timeout=20)
