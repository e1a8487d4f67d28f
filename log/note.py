"""A note that a folder keeps of itself beside its data, so that the data cannot vanish unnoticed.

LMDB takes a file that is not there, or empty, for a new one. Whether it *is* new, only something
that lies beside it can tell. So a node's folder has a note (`NOTE`): one line of JSON with a
checksum, replaced as a whole. It says

* that the folder is used: written before the data file is made, and told apart from then on;
* the newest transaction of which was known that it was durable when the note was written, at every
  opening and closing: data of before that transaction is a copy of an earlier state;
* the node's own values (`put_meta`): their bytes bear no checksum in the data.

A note that is gone or damaged beside whole data costs nothing but what it would have shown: it is
written again. The folder of a whole cluster has a note of the same form
(`ottla.broker.node.disks`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ottla.log.checksum import crc32c
from ottla.log.errors import DamagedFolderError
from ottla.log.folder import check_is_file
from ottla.log.pages import check_pages
from ottla.log.types import Unpacked

NOTE = "ottla.json"
DATA = "data.mdb"
LMDB_LOCK = "lock.mdb"


class Note(NamedTuple):
    """What a node's folder says of itself."""

    transaction: int
    """The data was durable up to this one; 0: the first start has not come to an end yet."""
    values: Mapping[str, bytes]
    """The node's own values then."""


USED = Note(1, {})
"""All that a damaged note says, or one that is gone from beside other files of ours."""


def examine(folder: Path) -> Note:
    """Whether LMDB may open the folder; what its note says. A new folder gets its first note.

    Raises `DamagedFolderError` when the folder was used and has no data, when the data is of
    before the note, or damaged so that LMDB would end the process; `OSError`.
    """
    note = _read(folder)
    data = folder / DATA
    there = os.path.lexists(data)
    for each in (data, folder / LMDB_LOCK):
        check_is_file(each)
    if note is None:
        if not there and not os.path.lexists(folder / LMDB_LOCK):
            note = Note(0, {})
            write_node_note(folder, note)
        else:
            note = USED
    if note.transaction == 0 and not (there and data.stat().st_size):
        return note
    check_data(folder, note.transaction)
    return note


def check_data(folder: Path, transaction: int = 0) -> None:
    """Look at the data file of a folder that was used, up to `transaction` at least.

    Raises `DamagedFolderError`, `OSError`.
    """
    check_is_there(folder)
    found = check_pages(folder / DATA)
    if found < transaction:
        raise DamagedFolderError(
            f"{DATA} is a copy of an earlier state: it ends with transaction {found}, and "
            f"{transaction} was durable"
        )


def check_is_there(folder: Path) -> None:
    """A folder that was used has a data file. Raises `DamagedFolderError`, `OSError`."""
    data = folder / DATA
    check_is_file(data)
    if not data.exists():
        raise DamagedFolderError(f"was used, and its {DATA} is gone")
    if not data.stat().st_size:
        raise DamagedFolderError(f"was used, and its {DATA} is empty")


def check_values(note: Note, values: Mapping[str, bytes]) -> None:
    """The node's own values in the data are those that the note names. Raises
    `DamagedFolderError`. (The data may have more: it is written first.)"""
    for name, value in note.values.items():
        if values.get(name) != value:
            raise DamagedFolderError(
                f"{DATA} says {_told(values.get(name))} of {name!r}, and {NOTE} says {_told(value)}"
            )


def write_node_note(folder: Path, note: Note) -> None:
    """Replace the note of a node's folder, durably. Raises `OSError`."""
    values = {name: value.hex() for name, value in note.values.items()}
    write_fields(folder, {"transaction": note.transaction, "values": values})


def _read(folder: Path) -> Note | None:
    fields = read_fields(folder)
    if fields is None:
        return None
    with suppress(AttributeError, KeyError, TypeError, ValueError):
        values = {name: bytes.fromhex(value) for name, value in fields["values"].items()}
        return Note(int(fields["transaction"]), values)
    return USED


def read_fields(folder: Path) -> dict[str, Unpacked] | None:
    """The fields of a folder's note: None without one, none of them when it is damaged.

    Raises `OSError` when it cannot be read, `DamagedFolderError` when it is no file.
    """
    path = folder / NOTE
    try:
        check_is_file(path)
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    with suppress(ValueError, RecursionError):
        fields = json.loads(raw)
        if isinstance(fields, dict) and fields.pop("crc", None) == _checksum(fields):
            return fields
    return {}


def write_fields(folder: Path, fields: Mapping[str, object]) -> None:
    """Replace a folder's note, durably and as a whole. Raises `OSError`."""
    text = json.dumps({**fields, "crc": _checksum(fields)}) + "\n"
    replace_file(folder / NOTE, folder / f"{NOTE}.new", text.encode())


def replace_file(path: Path, fresh: Path, data: bytes) -> None:
    """Put `data` in the place of a file, durably and as a whole, by way of `fresh`, a file beside
    it. Raises `OSError`."""
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names of new files durable. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checksum(fields: Mapping[str, object]) -> int:
    return crc32c(json.dumps(fields, sort_keys=True).encode())


def _told(value: bytes | None) -> str:
    return "nothing" if value is None else value.decode(errors="replace")
