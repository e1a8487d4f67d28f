"""A node's data folder: its lock, and space that is allocated before it is needed.

`FolderLock` keeps out other processes and other stores of this process. `ZerosAhead` extends the
data file with zeros before LMDB needs the space.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ottla.log.errors import DamagedFolderError, DiskFullError, FolderInUseError, FormatError
from ottla.log.forking import disown_in_children

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FIRST_STEP = 256 * 1024


class FolderLock:
    """The right to use a folder, until `close` or until this object is collected.

    It is an open file with a lock. A forked child inherits both: see `ottla.log.forking`.
    """

    def __init__(self, folder: Path) -> None:
        """Create `folder` if it does not exist, and take its lock.

        Raises `FolderInUseError` if another process or another store of this process has the lock:
        two writers would damage each other's data. Raises `DamagedFolderError` if the lock is not a
        regular file.
        """
        folder.mkdir(parents=True, exist_ok=True)
        check_is_file(folder / "LOCK")
        self._path = folder / "LOCK"
        self._process = os.getpid()
        # A file object closes itself if an interrupt comes before this constructor returns.
        self._file = io.FileIO(folder / "LOCK", "a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise FolderInUseError(f"{folder}: in use by another process or store") from error
        disown_in_children(self)

    @property
    def inherited(self) -> bool:
        """Whether this process is a forked child, and the folder belongs to its parent."""
        return self._process != os.getpid()

    def is_in_place(self) -> bool:
        """Whether the folder of this name is still the locked one. Raises `OSError`."""
        return os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))

    def descriptors(self) -> Iterable[int]:
        """See `ottla.log.forking`."""
        return () if self._file.closed else (self._file.fileno(),)

    def close(self) -> None:
        """Release the folder, also if a forked child still has the file open."""
        if not self.inherited and not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()


def in_use(folder: Path) -> bool:
    """Whether a store has the folder's lock now. Raises `FormatError` if the lock cannot be
    read."""
    try:
        descriptor = os.open(folder / "LOCK", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FormatError(f"{folder}: cannot be read ({error})") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def check_is_file(path: Path) -> None:
    """Raise `DamagedFolderError` if `path` exists and is not a regular file: opening a pipe could
    block for ever, and a device has no end. Raises `OSError`."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise DamagedFolderError(f"{path.name} is not a file")


class ZerosAhead:
    """Keeps zeros behind the used part of a file.

    Overwriting allocated blocks does not change the file system's metadata, so a commit costs one
    flush instead of two. The file grows by its own size, at most by `step_bytes` at a time, so that
    small folders stay small.
    """

    def __init__(self, path: Path, step_bytes: int) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._step_bytes = step_bytes

    def reserve(self, used: int) -> None:
        """Extend the file durably if less than half a step is left behind `used` bytes.

        Nobody else may write meanwhile. A full disk is not an error here: the write that needs the
        space will report it.
        """
        # A transaction larger than the zeros that were left has made the file grow, too.
        size = os.fstat(self._descriptor).st_size
        step = min(self._step_bytes, max(_FIRST_STEP, size))
        if not self._step_bytes or size - used >= step // 2:
            return
        try:
            os.pwrite(self._descriptor, bytes(step), size)
            os.fsync(self._descriptor)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._step_bytes = 0

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def is_full(code: int) -> bool:
    """Whether an errno means that there is no space left."""
    return code in _FULL


def has_no_room(folder: Path) -> bool:
    """Whether the disk has almost no free space. False if that cannot be found out."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _FIRST_STEP


def disk_full(folder: Path, detail: object) -> DiskFullError:
    """The error for a folder whose disk is full."""
    return DiskFullError(f"{folder}: no room on the disk ({detail})")
