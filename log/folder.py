"""A node's data folder: who may use it, and room on the disk before it is needed.

`FolderLock` keeps other processes, and other stores of this one, out. `ZerosAhead` keeps the data
file filled ahead of its use.
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
    """The right to use a folder, until `close`, or until nobody has this object any more.

    It is an open file that is locked, and so a forked child's as well: see `ottla.log.forking`.
    """

    def __init__(self, folder: Path) -> None:
        """Make `folder` and take its lock.

        Raises `FolderInUseError` when another process, or another store in this one, has it: two
        writers would each believe that what they wrote is all there is. `DamagedFolderError` when
        the lock is no file.
        """
        folder.mkdir(parents=True, exist_ok=True)
        check_is_file(folder / "LOCK")
        self._path = folder / "LOCK"
        self._process = os.getpid()
        # An object, which lets go of it if an interrupt comes before anybody has this one.
        self._file = io.FileIO(folder / "LOCK", "a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise FolderInUseError(f"{folder}: in use by another process or store") from error
        disown_in_children(self)

    @property
    def inherited(self) -> bool:
        """This process is a forked child, and the folder its parent's."""
        return self._process != os.getpid()

    def is_in_place(self) -> bool:
        """Whether the folder of this name is still the locked one. Raises `OSError`."""
        return os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))

    def descriptors(self) -> Iterable[int]:
        """See `ottla.log.forking`."""
        return () if self._file.closed else (self._file.fileno(),)

    def close(self) -> None:
        """Let go of the folder: at once, even if a child that forked unseen has the file too."""
        if not self.inherited and not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()


def in_use(folder: Path) -> bool:
    """Whether a store has the folder's lock now. Raises `FormatError` when that cannot be told."""
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
    """What lies there, if anything does, is a file: a pipe would keep who opens it waiting for
    ever, a device has no end. Raises `DamagedFolderError`, `OSError`."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise DamagedFolderError(f"{path.name} is no file")


class ZerosAhead:
    """Keeps a file filled with zeros ahead of what is used of it.

    Overwriting allocated blocks needs no change of the file system's own metadata, so that a commit
    costs one flush and not two. Steps double up to `step_bytes`, so that small folders stay small.
    """

    def __init__(self, path: Path, step_bytes: int) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._step_bytes = step_bytes

    def reserve(self, used: int) -> None:
        """Extend the file when less than half a step is left behind `used`, durably.

        Called while nobody else writes. A full disk is no error here: the write that needs the
        room will say so.
        """
        # The file may have grown without us, by a transaction larger than what was left of a step.
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
        """Let go of the file."""
        os.close(self._descriptor)


def is_full(code: int) -> bool:
    """Whether an errno means that there is no room."""
    return code in _FULL


def has_no_room(folder: Path) -> bool:
    """Whether next to nothing is left of the disk, as far as it tells."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _FIRST_STEP


def disk_full(folder: Path, detail: object) -> DiskFullError:
    """The error for a folder without room."""
    return DiskFullError(f"{folder}: no room on the disk ({detail})")
