"""Checks an LMDB file before LMDB maps it: reads every page that LMDB would follow.

**Theory.** LMDB trusts its file. It maps the file, follows page numbers without a check, and
asserts if it finds something unexpected. A file that was cut ends the process with SIGBUS, a
damaged page with SIGSEGV or SIGABRT; a test run that embeds the cluster ends with it.

So this module reads the file first, with ordinary reads, which can fail but cannot end the process.
It checks:

* **Both meta pages**: their form, and that their transaction numbers differ by one, with the even
  one on page 0. Each transaction lists the pages that it freed under its own number, so the last
  key of the free list must be the number of the meta page. So a meta page with an older number, or
  one that leads to an older tree, is found. (The trees of the last two transactions are always
  whole: LMDB does not reuse their pages.)
* **Every page of both trees**, the free list and the data: number, kind, bounds, the position and
  size of every node, the order of keys within the bounds that the pages above give, that all leaves
  have one depth, and that the counts of the meta page are right.
* **Every page once**: a page of a tree must be in the file, be used in one place, and not be free.
  If the free list named a page in use, LMDB would overwrite it some commits later.

Values are not checked here: each has its own checksum (`ottla.log.keys`). LMDB can safely read and
write a file that has passed, as long as the disk returns the same bytes.

Nobody may write the file meanwhile. The cost is one read per page of keys, and one per chunk of
entries that has its own pages; docs/decisions/0029-damaged-folders.md has figures.

Sources: lmdb.h and mdb.c of LMDB 0.9 (`MDB_page`, `MDB_meta`, `MDB_db`, `MDB_node`), whose files
have data version 1.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from struct import Struct, unpack_from
from typing import NamedTuple, Self

from ottla.log.errors import DamagedFolderError
from ottla.log.folder import check_is_file

_MAGIC = 0xBEEFC0DE
_DATA_VERSION = 1
_BRANCH, _LEAF, _OVERFLOW, _META = 1, 2, 4, 8
_BIG_DATA = 1
"""Flag of a node whose value has its own pages."""
_INTEGER_KEYS = 8
"""Flag of the free list: its keys are numbers in the machine's byte order."""
_NO_PAGE = (1 << 64) - 1
_METAS = 2
_MAX_DEPTH = 32
_MIN_PAGE_BYTES, _MAX_PAGE_BYTES = 512, 32768

_HEADER = Struct("<QHHHH")
"""Header of a page: number, unused, kind, the end of the list of node positions, the start of the
nodes."""
_SPAN = Struct("<I")
_SPAN_AT = 12
"""Where the first page of a large value has its number of pages, instead of the two bounds."""
_META_HEAD = Struct("<IIQQ")
_TREE = Struct("<IHHQQQQQ")
_META_TAIL = Struct("<QQ")
_NODE = Struct("<HHHH")
_NUMBER = Struct("<Q")


class Tree(NamedTuple):
    """One of the two trees, as a meta page describes it (`MDB_db`)."""

    pad: int
    """In the free list: bytes of a page. Else unused."""
    flags: int
    depth: int
    branches: int
    leaves: int
    overflows: int
    entries: int
    root: int


class Meta(NamedTuple):
    """A meta page: one of the two newest states of the environment."""

    page_bytes: int
    free: Tree
    data: Tree
    last_page: int
    transaction: int


_Nodes = list[tuple[bytes, int, int, int]]
"""Nodes of a page: the key, the position after it, then flags and size of the value, or 0 and the
number of a child page."""


def check_pages(path: Path) -> int:
    """Check every page that LMDB would read. Returns the number of the newest transaction.

    Raises `DamagedFolderError` if a page is not as LMDB expects it, `OSError` if the file cannot be
    read.
    """
    with _File(path) as file:
        metas = _read_metas(file)
        newest, older = sorted(metas, key=lambda meta: meta.transaction, reverse=True)
        _check_neighbours(file, metas)
        walk = _Walk(file, newest)
        walk.run()
        for meta in (newest, older):
            _check_transaction(file, meta)
        return newest.transaction


class _File:
    """The data file, for ordinary reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        check_is_file(path)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.bytes = os.fstat(self._descriptor).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read(self, size: int, at: int) -> bytes:
        """`size` bytes at `at`. Raises `DamagedFolderError` if the file has fewer."""
        found = os.pread(self._descriptor, size, at)
        if len(found) < size:
            raise DamagedFolderError(
                f"{self.path.name} has {self.bytes} bytes, and what it should hold reaches to at "
                f"least {at + size}: it was cut"
            )
        return found


def _read_metas(file: _File) -> list[Meta]:
    first = _read_meta(file, 0, 0)
    return [first, _read_meta(file, 1, first.page_bytes)]


def _read_meta(file: _File, number: int, page_bytes: int) -> Meta:
    head = _HEADER.size + _META_HEAD.size
    raw = file.read(head + 2 * _TREE.size + _META_TAIL.size, number * page_bytes)
    page, _, kind, _, _ = _HEADER.unpack_from(raw)
    magic, version, _, _ = _META_HEAD.unpack_from(raw, _HEADER.size)
    free = Tree(*_TREE.unpack_from(raw, head))
    data = Tree(*_TREE.unpack_from(raw, head + _TREE.size))
    meta = Meta(free.pad, free, data, *_META_TAIL.unpack_from(raw, head + 2 * _TREE.size))
    size = meta.page_bytes
    well = (
        (page, kind, magic, version) == (number, _META, _MAGIC, _DATA_VERSION)
        and _MIN_PAGE_BYTES <= size <= _MAX_PAGE_BYTES
        and not size & (size - 1)
        and size == (page_bytes or size)
        and (free.flags, data.flags) == (_INTEGER_KEYS, 0)
    )
    if not well:
        raise DamagedFolderError(
            f"meta page {number} of {file.path.name} is damaged, or of another version of LMDB"
        )
    return meta


def _check_neighbours(file: _File, metas: list[Meta]) -> None:
    """Check that the numbers of the two meta pages differ by one, since commits write them in turn.
    Before the first commit both are 0."""
    even, odd = (meta.transaction for meta in metas)
    if (even, odd) != (0, 0) and (even % 2 or abs(even - odd) != 1):
        raise DamagedFolderError(
            f"the meta pages of {file.path.name} are of transactions {even} and {odd}, which "
            f"do not follow on each other"
        )


def _check_transaction(file: _File, meta: Meta) -> None:
    """Check that the last record of the free list has the pages that this transaction freed. The
    first transaction frees none."""
    if meta.transaction <= 1:
        return
    last = -1
    number, depth = meta.free.root, meta.free.depth
    while depth and number <= meta.last_page:
        page = _Page(file, meta.page_bytes, number)
        key, _, _, child = page.nodes()[-1]
        if page.kind == _LEAF:
            last = _NUMBER.unpack(key)[0] if len(key) == _NUMBER.size else -1
            break
        number, depth = child, depth - 1
    if last != meta.transaction:
        raise DamagedFolderError(
            f"a meta page of {file.path.name} names transaction {meta.transaction}, and leads to "
            f"the state of {last if last >= 0 else 'none'}"
        )


class _Page:
    """One page of a tree. The constructor checks its header."""

    __slots__ = ("_lower", "_upper", "kind", "name", "raw")

    def __init__(self, file: _File, page_bytes: int, number: int) -> None:
        self.name = (number, file.path.name)
        self.raw = file.read(page_bytes, number * page_bytes)
        found, _, self.kind, self._lower, self._upper = _HEADER.unpack_from(self.raw)
        if found != number or self.kind not in (_BRANCH, _LEAF):
            raise self.damaged("is another one, or of another kind")
        if self._lower % 2 or not _HEADER.size < self._lower <= self._upper <= page_bytes:
            raise self.damaged("has impossible bounds")

    def damaged(self, how: str) -> DamagedFolderError:
        """The error that says what is wrong with this page."""
        return DamagedFolderError(f"page {self.name[0]} of {self.name[1]} {how}")

    def nodes(self) -> _Nodes:
        """All nodes in the page's order. Raises if they do not exactly fill the page from its upper
        bound on."""
        raw, branch, head, unpack = self.raw, self.kind == _BRANCH, _NODE.size, _NODE.unpack_from
        places = unpack_from(f"<{(self._lower - _HEADER.size) // 2}H", raw, _HEADER.size)
        room = len(raw) - head
        found, ends = [], []
        for at in places:
            if at > room:
                raise self.damaged("has a node outside")
            low, high, flags, key_size = unpack(raw, at)
            key_end = end = at + head + key_size
            size = low | high << 16
            if branch:
                size |= flags << 32
                flags = 0
            elif flags == _BIG_DATA:
                end += _NUMBER.size
            elif flags:
                raise self.damaged("has a node of another kind")
            else:
                end += size
            found.append((raw[at + head : key_end], key_end, flags, size))
            ends.append(end + 1 & ~1)
        # Each node begins where another one ends, and one ends at the end of the page.
        if sorted([self._upper, *ends]) != sorted([*places, len(raw)]):
            raise self.damaged("has nodes that do not lie side by side")
        return found


class _Walk:
    """Walks over both trees of one meta page; see the module's docstring."""

    def __init__(self, file: _File, meta: Meta) -> None:
        self._file = file
        self._meta = meta
        pages = meta.last_page + 1
        # A free page may be missing in the file: LMDB writes it before it reads it.
        held = file.bytes // meta.page_bytes
        if meta.last_page > _most_pages(held, meta):
            raise DamagedFolderError(
                f"{file.path.name} has {file.bytes} bytes, and should have "
                f"{pages * meta.page_bytes}: it was cut"
            )
        self._seen = bytearray(pages)
        self._counts = [0, 0, 0]
        self._entries = 0

    def run(self) -> None:
        """Check both trees and the free pages. Raises `DamagedFolderError`."""
        freed: list[tuple[int, bytes]] = []
        self._tree(self._meta.free, "the free list", freed)
        self._tree(self._meta.data, "the data", None)
        for transaction, value in freed:
            self._free(transaction, value)
        missing = self._seen.find(0, _METAS)
        if missing >= 0:
            raise DamagedFolderError(
                f"page {missing} of {self._file.path.name} is neither in use nor free"
            )

    def _tree(self, tree: Tree, what: str, freed: list[tuple[int, bytes]] | None) -> None:
        self._counts, self._entries = [0, 0, 0], 0
        if (tree.root == _NO_PAGE) != (tree.depth == 0) or tree.depth > _MAX_DEPTH:
            raise DamagedFolderError(f"the root of {what} in {self._file.path.name} is damaged")
        if tree.depth:
            self._page(tree.root, tree.depth, (b"", None), freed)
        told = [tree.branches, tree.leaves, tree.overflows, tree.entries]
        if [*self._counts, self._entries] != told:
            raise DamagedFolderError(
                f"{what} of {self._file.path.name} should have {told} branches, leaves, large "
                f"pages and entries, and has {[*self._counts, self._entries]}"
            )

    def _page(
        self,
        number: int,
        depth: int,
        bounds: tuple[bytes, bytes | None],
        freed: list[tuple[int, bytes]] | None,
    ) -> None:
        """Check a page and all pages below it. Its keys must be within `bounds`. Values of the free
        list are added to `freed`; it is None for the data."""
        self._take(number, 1)
        page = _Page(self._file, self._meta.page_bytes, number)
        if (page.kind == _LEAF) != (depth == 1):
            raise page.damaged("lies at another depth than it should")
        nodes = page.nodes()
        if page.kind == _LEAF:
            self._check_order([node[0] for node in nodes], page, bounds, numbers=freed is not None)
            self._leaf(page, nodes, freed)
            return
        self._counts[0] += 1
        if freed is None and len(nodes) == 1:
            raise page.damaged("has a single child")
        ends = [node[0] for node in nodes[1:]]  # The first key of a branch has no meaning.
        self._check_order(ends, page, bounds, numbers=freed is not None)
        below = zip(nodes, [bounds[0], *ends], [*ends, bounds[1]], strict=True)
        for (_, _, _, child), start, end in below:
            self._page(child, depth - 1, (start, end), freed)

    def _leaf(self, page: _Page, nodes: _Nodes, freed: list[tuple[int, bytes]] | None) -> None:
        self._counts[1] += 1
        self._entries += len(nodes)
        for key, at, flags, size in nodes:
            if not key:
                raise page.damaged("has an empty key")
            start = self._large(page, at, size) if flags else None
            if freed is not None:
                value = page.raw[at : at + size] if start is None else self._file.read(size, start)
                freed.append((_NUMBER.unpack(key)[0], value))

    def _check_order(
        self,
        found: list[bytes],
        page: _Page,
        bounds: tuple[bytes, bytes | None],
        *,
        numbers: bool,
    ) -> None:
        """Check that keys rise and are within the bounds."""
        low, high = bounds
        if numbers:
            if any(len(key) != _NUMBER.size for key in found):
                raise page.damaged("has a key that is no number")
            found = [key[::-1] for key in found]
            low, high = low[::-1], None if high is None else high[::-1]
        for key in found:
            if key < low or (high is not None and key >= high):
                raise page.damaged("has keys that do not belong there")
            low = key + b"\0"

    def _large(self, page: _Page, at: int, value_bytes: int) -> int:
        """Check the pages of a large value, whose first page number is at `at`. Returns where in
        the file the value begins."""
        number = _NUMBER.unpack_from(page.raw, at)[0]
        size = self._meta.page_bytes
        if number > self._meta.last_page:
            raise page.damaged("names a page behind the last one")
        head = self._file.read(_HEADER.size, number * size)
        found, _, kind, _, _ = _HEADER.unpack(head)
        span = _SPAN.unpack_from(head, _SPAN_AT)[0]
        if (found, kind) != (number, _OVERFLOW) or span * size < _HEADER.size + value_bytes:
            raise page.damaged(f"names page {number} for a value, and that is something else")
        self._take(number, span)
        if (number + span) * size > self._file.bytes:
            self._file.read(span * size, number * size)
        self._counts[2] += span
        return int(number * size + _HEADER.size)

    def _free(self, transaction: int, value: bytes) -> None:
        """Check one record of the free list: the number of pages, then the pages in falling
        order."""
        count = _NUMBER.unpack_from(value)[0] if len(value) >= _NUMBER.size else _NO_PAGE
        whole = (count + 1) * _NUMBER.size <= len(value) and transaction <= self._meta.transaction
        pages = unpack_from(f"<{count}Q", value, _NUMBER.size) if whole else ()
        if not whole or any(one <= other for one, other in pairwise(pages)):
            raise DamagedFolderError(f"a record of {self._file.path.name}'s free list is damaged")
        for page in pages:
            self._take(page, 1)

    def _take(self, number: int, span: int) -> None:
        """Mark pages as seen. Raises if one does not exist or was seen before."""
        end = number + span
        if not _METAS <= number < end <= len(self._seen):
            raise DamagedFolderError(
                f"page {number} of {self._file.path.name} is named, and there is none"
            )
        if self._seen.find(1, number, end) >= 0:
            raise DamagedFolderError(
                f"page {number} of {self._file.path.name} is named in two places"
            )
        self._seen[number:end] = b"\1" * span


def _most_pages(held: int, meta: Meta) -> int:
    """An upper bound for the last page of a file with `held` pages: pages beyond it must be free,
    and the free list can name only so many."""
    listed = min(held, meta.free.leaves + meta.free.overflows)
    return held + listed * meta.page_bytes // _NUMBER.size
