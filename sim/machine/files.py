"""Files that are written whole or not at all: the old content survives a full disk and a kill."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import IO


def write_whole(path: Path, data: bytes) -> None:
    """Write a temporary file beside `path` and move it there. What is no plain file, such as
    /dev/stdout, is written directly; for a link, its target is replaced. Raises `OSError`."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    path = path.resolve()
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def lock(path: Path) -> IO[str] | None:
    """A file that one process at a time may hold, until the file is closed or the process ends in
    any way. None: another process holds it. Raises `OSError`."""
    file = path.open("w")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows: two at once are not detected
        return file
    except BlockingIOError:
        file.close()
        return None
    return file


def no_folder(path: Path, error: OSError) -> str:
    """The message about a folder that cannot be made or written: which, why, and what to do."""
    file = None
    with suppress(OSError):  # a name that is too long, a folder that we may not read
        above = (path, *path.parents)
        file = next((each for each in above if each.exists() and not each.is_dir()), None)
    if file == path:
        return f"{path} is a file; name a folder"
    if file is not None:
        return f"{path}: {file} is a file; name a folder elsewhere"
    return f"{path}: {error.strerror or error}; name a folder that can be written"
