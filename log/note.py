"""A note in a folder, beside its data: it shows if the data was removed or replaced by older data.

If the data file is missing or empty, LMDB begins a new one without an error. So a node's folder has
a note (`NOTE`): one line of JSON with a checksum, replaced as a whole. The note says

* that the folder is in use: it is written before the data file is made;
* the newest transaction that was known to be durable when the note was written, at every opening
  and closing. If the data ends with an older transaction, it is a copy of an earlier state;
* the node's own values (`put_meta`), which have no checksum in the data.

If the note is missing or damaged but the data is whole, the note is written again. The folder of a
whole cluster has a note of the same form (`ottla.broker.node.disks`).
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
    """The content of a node's note."""

    transaction: int
    """The data was durable up to this transaction. 0: the first start was not completed."""
    values: Mapping[str, bytes]
    """The node's own values when the note was written."""


USED = Note(1, {})
"""Stands for a damaged note, or a missing one in a folder that has other files of ours."""


def examine(folder: Path) -> Note:
    """Check that LMDB may open the folder, and return its note. A new folder gets its first note.

    Raises `DamagedFolderError` if the folder was used and has no data, if the data is older than
    the note, or if it is damaged so that LMDB would end the process. Raises `OSError`.
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
    """Check the data file of a folder that was used; it must reach at least `transaction`.

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
    """Check that the data has the node values of the note. (It may have more, because the data is
    written before the note.) Raises `DamagedFolderError`."""
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
    """The fields of a folder's note. None if there is no note; empty if it is damaged.

    Raises `OSError` if it cannot be read, `DamagedFolderError` if it is not a regular file.
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
    """Replace the file `path` by `data`, durably and as a whole. `fresh`: a path in the same folder
    for the new file, which is then renamed. Raises `OSError`."""
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names of new files in a folder durable. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _checksum(fields: Mapping[str, object]) -> int:
    return crc32c(json.dumps(fields, sort_keys=True).encode())


def _told(value: bytes | None) -> str:
    return "nothing" if value is None else value.decode(errors="replace")
