"""Damages of a node's folder, drawn from a seed, each tried on a real folder in a child process.

`tried` copies the folder, damages one file of it, opens the copy, and compares everything in it
with what was durable. Then it writes to the copy and opens it again, because a free list that names
a page in use does its harm only then. A child reports one of

* ``refused`` and why: a `StoreError` or `OSError` from the first opening,
* ``equal``: everything is there, also after the writes,
* ``wrong`` and what, or the signal that ended it: this must never happen.
"""

from __future__ import annotations

import faulthandler
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import lmdb

import log_kit as kit
from ottla.log.errors import StoreError
from ottla.log.lmdb_store import LmdbStore
from ottla.log.note import DATA, LMDB_LOCK, NOTE
from ottla.log.store import Write
from ottla.raft.types import HardState

PAGE = 4096
FILES = (DATA, DATA, DATA, DATA, DATA, DATA, LMDB_LOCK, "LOCK", NOTE)
CHILD_SECONDS = 60
SHARED_MEMORY = Path("/dev/shm")


def quick_folder() -> Iterator[Path]:
    """A folder where a sync costs nothing, if there is such a place; gone when done with."""
    place = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def lived(folder: Path, seed: int) -> Path:
    """Make `folder` with a life of its own in it: groups of several sizes, truncations, snapshots,
    compaction, a group deleted. Returns a copy of it as it was before the last opening."""
    draw = random.Random(seed)
    store = _open(folder)
    store.put_meta("cluster-id", b"cluster %d" % seed)
    store.put_meta("nodes", b"3")
    last = dict.fromkeys(range(1, 5), 0)
    for turn in range(120):
        group = draw.randint(1, 4)
        back = draw.choice([0, 0, 0, 1]) if last[group] > 30 else 0
        first, size = last[group] + 1 - back, draw.choice([10, 500, 1500, 3000, 9000])
        run = [
            kit.batch_entry(index, turn + 1, values=[bytes([turn]) * size])
            for index in range(first, first + draw.randint(1, 4))
        ]
        last[group] = run[-1].index
        store.append([Write(group, hard_state=HardState(turn + 1, 1), first=first, entries=run)])
        if last[group] > 40 and draw.random() < 0.2:
            upto = last[group] - 30
            store.append([Write(group, snapshot=kit.snapshot_at(upto, 1), compact_to=upto)])
        if turn == 70:
            store.append([Write(4, delete=True)])
            last[4] = 0
        kit.sync(store)
    store.close()
    earlier = folder.with_name(f"{folder.name}-earlier")
    shutil.copytree(folder, earlier)
    store = _open(folder)
    kit.append_run(store, last[1] + 1, last[1] + 2, term=200)
    kit.sync(store)
    store.close()
    return earlier


def contents(store: LmdbStore) -> dict[str, Any]:
    """All that a store holds."""
    groups = store.groups()
    return {
        "groups": groups,
        "entries": {each.group: list(store.scan(each.group)) for each in groups},
        "snapshots": {each.group: store.snapshot(each.group) for each in groups},
        "values": [store.get_meta(name) for name in ("cluster-id", "nodes")],
    }


def contents_of(folder: Path) -> dict[str, Any]:
    """All that a folder holds."""
    with closing(_open(folder)) as store:
        return contents(store)


def tried(folder: Path, expected: dict[str, Any], damage: Callable[[Path], object]) -> str:
    """What came of a damaged copy of `folder`, which holds `expected`; see the module's text."""
    copy = folder.with_name(f"{folder.name}-copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    damage(copy)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _report(writing, copy, expected)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"wrong: {signal.Signals(os.WTERMSIG(status)).name} after {said!r}"
    return said


def _report(writing: int, copy: Path, expected: dict[str, Any]) -> None:
    """The child: try the folder, say what came of it, end."""
    faulthandler.disable()  # The signal is the outcome.
    signal.alarm(CHILD_SECONDS)
    try:
        told = _outcome(copy, expected)
    except BaseException as error:  # noqa: BLE001 - the child has nobody else to tell
        told = f"wrong: {error!r}"
    os.write(writing, told.encode()[:4000])
    os.execlp("true", "true")  # Nothing of the parent is cleaned up on the way out.


def _outcome(copy: Path, expected: dict[str, Any]) -> str:
    try:
        store = _open(copy)
    except (StoreError, OSError) as error:
        return f"refused: {type(error).__name__}: {error}"
    found = contents(store)
    if found != expected:
        return f"wrong: {[name for name in expected if found[name] != expected[name]]} differ"
    written: dict[int, int] = {}
    for turn in range(8):
        for each in store.groups():
            first = each.last_index + 1
            kit.append_run(store, first, first + turn % 3, term=300, group=each.group)
            written[each.group] = first + turn % 3
        kit.sync(store)
    store.close()
    store = _open(copy)
    for group, entries in contents(store)["entries"].items():
        before = expected["entries"][group]
        if entries[: len(before)] != before or entries[-1].index != written[group]:
            return f"wrong: group {group} differs after the writes"
    store.close()
    return "equal"


def _open(folder: Path) -> LmdbStore:
    return kit.open_lmdb(folder, node=1, cache_bytes=0)


# ---- damages


def drawn(draw: random.Random, earlier: Path, other: Path) -> tuple[str, Callable[[Path], object]]:
    """A damage of one file, and its name. `earlier` is the folder as it was, `other` another's."""
    name = draw.choice(FILES)
    kinds = dict(_OF_ANY_FILE)
    if name == DATA:
        kinds |= dict.fromkeys(("byte", "bits", "page", "header", "meta"), _of_data)
    kind = draw.choice([*kinds])
    if name == DATA and draw.random() < 0.7:
        kind = draw.choice(["byte", "bits", "page", "header", "meta"])
    seed = draw.getrandbits(32)

    def damage(folder: Path) -> None:
        kinds[kind](folder / name, random.Random(seed), kind, (earlier / name, other / name))

    return f"{name} {kind} {seed}", damage


Sources = tuple[Path, Path]
Damage = Callable[[Path, random.Random, str, Sources], object]


def _delete(path: Path, *_: object) -> None:
    path.unlink()


def _empty(path: Path, *_: object) -> None:
    os.truncate(path, 0)


def _cut(path: Path, draw: random.Random, *_: object) -> None:
    size = path.stat().st_size
    at = draw.randrange(max(1, size))
    os.truncate(path, at // PAGE * PAGE if draw.random() < 0.5 else at)


def _extend(path: Path, draw: random.Random, *_: object) -> None:
    more = draw.randrange(1, 3 * PAGE)
    with path.open("ab") as file:
        file.write(bytes(more) if draw.random() < 0.5 else draw.randbytes(more))


def _garbage(path: Path, draw: random.Random, *_: object) -> None:
    path.write_bytes(draw.randbytes(draw.choice([1, 100, PAGE, 20_000])))


def _zeros(path: Path, *_: object) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _directory(path: Path, *_: object) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path, *_: object) -> None:
    path.unlink()
    os.mkfifo(path)


def _link_to_nothing(path: Path, *_: object) -> None:
    path.unlink()
    path.symlink_to("nothing")


def _link_to_itself(path: Path, *_: object) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _link_to_memory(path: Path, *_: object) -> None:
    """A file that can be opened, and gives input/output errors."""
    path.unlink()
    path.symlink_to("/proc/self/mem")


def _earlier(path: Path, _: random.Random, __: str, sources: Sources) -> None:
    shutil.copy(sources[0], path)


def _of_another(path: Path, _: random.Random, __: str, sources: Sources) -> None:
    shutil.copy(sources[1], path)


_OF_ANY_FILE: dict[str, Damage] = {
    "deleted": _delete,
    "emptied": _empty,
    "cut": _cut,
    "extended": _extend,
    "garbage": _garbage,
    "zeros": _zeros,
    "directory": _directory,
    "pipe": _pipe,
    "link to nothing": _link_to_nothing,
    "link to itself": _link_to_itself,
    "link to memory": _link_to_memory,
    "earlier": _earlier,
    "of another": _of_another,
}


def _of_data(path: Path, draw: random.Random, kind: str, sources: Sources) -> None:
    """Bytes of the data file change, mostly such as are in use."""
    data = bytearray(path.read_bytes())
    used = max(PAGE * 2, len(bytes(data).rstrip(b"\0")))
    pages = -(-used // PAGE)
    page = draw.randrange(pages) * PAGE
    if kind == "byte":
        for _ in range(draw.choice([1, 1, 2, 8])):
            data[draw.randrange(used)] = draw.randrange(256)
    elif kind == "bits":
        data[draw.randrange(used)] ^= 1 << draw.randrange(8)
    elif kind == "header":
        at = page + draw.choice([draw.randrange(16), draw.randrange(16, 60)])
        data[at] = draw.choice([0, 1, 255, data[at] ^ (1 << draw.randrange(8))])
    elif kind == "meta":
        _damage_meta(data, draw, sources[0].read_bytes())
    else:
        other = draw.randrange(pages) * PAGE
        data[page : page + PAGE] = draw.choice(
            [
                bytes(PAGE),
                b"\xff" * PAGE,
                draw.randbytes(PAGE),
                bytes(data[other : other + PAGE]),
                sources[1].read_bytes()[page : page + PAGE].ljust(PAGE, b"\0"),
            ]
        )
    path.write_bytes(data)


def _damage_meta(data: bytearray, draw: random.Random, earlier: bytes) -> None:
    """One of the two meta pages: a bit, a byte, the other one, or one of an earlier state."""
    at = draw.choice([0, PAGE])
    how = draw.randrange(4)
    place = at + draw.randrange(16 + 136)
    if how == 0:
        data[place] ^= 1 << draw.randrange(8)
    elif how == 1:
        data[place] = draw.randrange(256)
    elif how == 2:
        data[at : at + PAGE] = data[PAGE - at : 2 * PAGE - at]
    else:
        data[at : at + PAGE] = earlier[at : at + PAGE]


def used_bytes(path: Path) -> int:
    """Bytes of a data file up to the last page that its environment names."""
    with lmdb.open(str(path.parent), readonly=True, lock=False) as env:
        return int(env.info()["last_pgno"] + 1) * PAGE
