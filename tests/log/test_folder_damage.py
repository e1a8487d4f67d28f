"""A damaged folder is refused, or holds all it held; no damage ends the process.

A file that was cut ended it with SIGBUS, a damaged page with SIGSEGV or SIGABRT out of LMDB, with
the test run that embedded the cluster; an emptied or deleted one began as a new log without a word.
"""

import os
import random
import shutil
from collections import Counter

import pytest

import log_folder_damage as damage
import log_kit as kit
from ottla.log import lmdb_store
from ottla.log.errors import DamagedFolderError, FormatError
from ottla.log.lmdb_store import LmdbStore, LmdbView
from ottla.log.note import DATA, LMDB_LOCK, NOTE, USED


@pytest.fixture(scope="module")
def lives():
    """A folder, what it holds, the same folder as it was before, and another one."""
    for place in damage.quick_folder():
        folder, other = place / "node", place / "other"
        earlier = damage.lived(folder, 1)
        damage.lived(other, 2)
        yield folder, damage.contents_of(folder), earlier, other


def outcomes(lives, seeds):
    folder, expected, earlier, other = lives
    found: Counter[str] = Counter()
    wrong = []
    for seed in seeds:
        name, change = damage.drawn(random.Random(seed), earlier, other)
        said = damage.tried(folder, expected, change)
        found[said.partition(":")[0]] += 1
        if not said.startswith(("equal", "refused")):
            wrong.append((seed, name, said))
    assert not wrong
    return found


@pytest.mark.slow
def test_a_damaged_folder_is_refused_or_holds_all_it_held(lives):
    found = outcomes(lives, range(60))
    assert min(found["refused"], found["equal"]) > 10


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(250, marks=pytest.mark.slow),
        pytest.param(20_000, marks=pytest.mark.nightly),
    ],
)
def test_so_is_one_of_many(lives, count):
    outcomes(lives, range(1000, 1000 + count))


def test_negative_control_without_the_look_at_the_pages_the_process_ends(lives, monkeypatch):
    monkeypatch.setattr(lmdb_store, "examine", lambda _: USED)
    folder, expected, _, _ = lives

    def cut(copy):
        os.truncate(copy / DATA, 3 * damage.PAGE)

    assert damage.tried(folder, expected, cut).startswith("wrong: SIGBUS")


# ---- one by one


@pytest.fixture
def folder(tmp_path):
    """A folder that was used and closed."""
    folder = tmp_path / "node"
    store = kit.open_lmdb(folder, node=1)
    store.put_meta("cluster-id", b"here")
    kit.append_run(store, 1, 9)
    kit.sync(store)
    store.close()
    return folder


def refusal(folder):
    with pytest.raises(DamagedFolderError) as raised:
        kit.open_lmdb(folder, node=1)
    return str(raised.value)


def test_data_that_is_gone_is_no_new_folder(folder):
    (folder / DATA).unlink()
    assert refusal(folder) == "was used, and its data.mdb is gone"
    assert not (folder / DATA).exists()


def test_nor_is_empty_data(folder):
    os.truncate(folder / DATA, 0)
    assert refusal(folder) == "was used, and its data.mdb is empty"


def test_nor_is_what_is_left_when_the_note_is_gone_too(folder):
    (folder / DATA).unlink()
    (folder / NOTE).unlink()
    assert refusal(folder) == "was used, and its data.mdb is gone"


def test_data_that_was_cut_says_what_is_missing(folder):
    os.truncate(folder / DATA, 3 * damage.PAGE)
    assert "data.mdb has 12288 bytes, and what it should hold reaches to at least" in refusal(
        folder
    )


def test_room_behind_the_data_is_no_loss(folder):
    """The file is filled ahead of its use; what nobody has written to may go."""
    used = damage.used_bytes(folder / DATA)
    os.truncate(folder / DATA, used)
    store = kit.open_lmdb(folder, node=1)
    assert store.groups()[0].last_index == 9
    store.close()


NO_FILES = [os.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")]


@pytest.mark.parametrize("make", NO_FILES)
@pytest.mark.parametrize("name", [DATA, LMDB_LOCK, NOTE, "LOCK"])
def test_what_is_no_file_is_called_so_by_its_name(folder, name, make):
    """A pipe was an empty file, a folder in the place of a lock a failure of LMDB."""
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    assert refusal(folder) == f"{name} is not a file"


@pytest.mark.parametrize("make", NO_FILES)
def test_so_it_is_in_a_new_folder(tmp_path, make):
    (tmp_path / "node").mkdir()
    make(tmp_path / "node" / DATA)
    assert refusal(tmp_path / "node") == "data.mdb is not a file"


def test_data_of_an_earlier_state_is_refused(folder):
    shutil.copy(folder / DATA, folder.with_name("earlier"))
    store = kit.open_lmdb(folder, node=1)
    kit.append_run(store, 10, 12)
    kit.sync(store)
    store.close()
    shutil.copy(folder.with_name("earlier"), folder / DATA)
    assert "is a copy of an earlier state: it ends with transaction" in refusal(folder)


@pytest.mark.parametrize("page", [0, 1])
def test_a_meta_page_of_an_earlier_state_is_refused(folder, page):
    """Both trees of the last two transactions are whole: LMDB would go on with the older one."""
    earlier = (folder / DATA).read_bytes()[page * damage.PAGE : (page + 1) * damage.PAGE]
    store = kit.open_lmdb(folder, node=1)
    for index in (10, 11, 12):
        kit.append_run(store, index, index)
        kit.sync(store)
    store.close()
    with (folder / DATA).open("r+b") as file:
        file.seek(page * damage.PAGE)
        file.write(earlier)
    assert "do not follow on each other" in refusal(folder)


def test_a_value_of_the_node_that_is_not_the_noted_one_is_refused(folder):
    """It bears no checksum: a flipped bit in the cluster's id made another cluster of it."""
    kit.change_lmdb(folder, b"mcluster-id", b"hera")
    assert refusal(folder) == "data.mdb says hera of 'cluster-id', and ottla.json says here"


@pytest.mark.parametrize(
    "note", [b"", b"{", b"[]", b'{"transaction": 900, "crc": 1}\n', b"[" * 9000]
)
def test_a_note_that_is_damaged_costs_nothing_and_is_written_again(folder, note):
    whole = (folder / NOTE).read_bytes()
    (folder / NOTE).write_bytes(note)
    kit.open_lmdb(folder, node=1).close()
    assert (folder / NOTE).read_bytes() != note
    assert len((folder / NOTE).read_bytes()) == len(whole)


def test_a_folder_of_before_there_were_notes_gets_one(folder):
    (folder / NOTE).unlink()
    kit.open_lmdb(folder, node=1).close()
    (folder / DATA).unlink()
    assert "gone" in refusal(folder)


@pytest.mark.parametrize("left", [(), ("LOCK",), ("LOCK", NOTE), ("LOCK", NOTE, LMDB_LOCK)])
def test_a_first_start_that_died_may_begin_again(tmp_path, left, monkeypatch):
    folder = tmp_path / "node"
    with monkeypatch.context() as patched:
        patched.setattr(lmdb_store, "LmdbEnvironment", None)
        with pytest.raises(TypeError):
            LmdbStore.open(folder)
    assert sorted(each.name for each in folder.iterdir()) == ["LOCK", NOTE]
    (folder / LMDB_LOCK).touch()
    for name in {"LOCK", NOTE, LMDB_LOCK} - set(left):
        (folder / name).unlink()
    kit.open_lmdb(folder, node=1).close()


def test_a_view_of_damaged_data_is_refused_too(folder):
    os.truncate(folder / DATA, 3 * damage.PAGE)
    with pytest.raises(FormatError, match=r"cannot be read .*it was cut"):
        LmdbView(folder)
