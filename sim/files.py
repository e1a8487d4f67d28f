"""Files that are whole or not there: what was kept before survives a full disk and a kill."""

from __future__ import annotations

from pathlib import Path
from typing import IO


def write_whole(path: Path, data: bytes) -> None:
    """Write a file beside its place and move it there. What is no plain file, such as /dev/stdout,
    is written to as it is, and behind a link it is its file that is replaced. Raises `OSError`."""
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
    """A file that one process at a time may hold: held until it is closed, or its process ends,
    however it does. None when somebody else holds it. Raises `OSError`."""
    file = path.open("w")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows: two at once are not told
        return file
    except BlockingIOError:
        file.close()
        return None
    return file
