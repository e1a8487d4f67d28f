"""What can go wrong with a log. Each class says whether its outcome is *definite*.

Definite means: what was asked for did not happen and never will. After an indefinite error the
writes may or may not be found by the next start, and whoever led must not guess (promise-R5).
"""

from __future__ import annotations

from ottla.raft.types import GroupId, LogIndex


class StoreError(Exception):
    """The store failed and refuses everything from now on: a restart must find what is durable."""

    definite = False


class DiskFullError(StoreError):
    """No room: the transaction was given up before anything in it could be seen again."""

    definite = True


class FormatError(StoreError):
    """The folder is not one this program, or this node, may open. Nothing was changed."""

    definite = True


class FolderInUseError(FormatError):
    """Another process, or another store in this one, has the folder."""


class DamagedFolderError(StoreError):
    """A file of the folder is not what its last use left: cut, emptied, gone, overwritten, or put
    back as it was earlier. Nothing was changed."""

    definite = True


class CorruptLogError(StoreError):
    """Something that was durable is damaged or missing; only another replica can repair it."""

    definite = True

    def __init__(self, group: GroupId, index: LogIndex, reason: str):
        super().__init__(
            f"group {group}, index {index}: {reason}; this node has lost what was durable and must "
            "not go on"
        )
        self.group = group
        self.index = index


class CompactedError(LookupError):
    """Entries were asked for that are no longer in the log; the store is well."""

    definite = True

    def __init__(self, group: GroupId, index: LogIndex, first_index: LogIndex):
        super().__init__(f"group {group}: index {index} is gone, the log starts at {first_index}")
        self.group = group
        self.index = index
        self.first_index = first_index


class RecordsError(ValueError):
    """The records inside a batch cannot be read: not decompressible, malformed or too large."""

    definite = True


class RecordLengthError(RecordsError):
    """The length that a record begins with has more bytes than a number may have."""


class InflateError(RecordsError):
    """What is wrong is the compression: what is inside is not known."""


class DecodeError(ValueError):
    """Bytes that should be a stored or sent entry are not, or their checksum does not match."""

    definite = True
