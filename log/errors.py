"""Errors of a log. Each class says whether its outcome is *definite*.

*Definite* means: the call did nothing, and what it should write will never appear. After an
indefinite error the next start may find the writes or not, so a leader must resign (promise-R5).
"""

from __future__ import annotations

from ottla.raft.types import GroupId, LogIndex


class StoreError(Exception):
    """The store failed and refuses all later calls. Only a restart finds out what is durable."""

    definite = False


class DiskFullError(StoreError):
    """The disk is full: the transaction was given up, and nothing of it can appear later."""

    definite = True


class FormatError(StoreError):
    """This program, or this node, may not open the folder. Nothing was changed."""

    definite = True


class FolderInUseError(FormatError):
    """Another process, or another store of this process, uses the folder."""


class DamagedFolderError(StoreError):
    """A file of the folder is not as its last user left it: it was cut, emptied, removed,
    overwritten, or replaced by an older copy. Nothing was changed."""

    definite = True


class CorruptLogError(StoreError):
    """Durable data is damaged or missing; only another replica can repair it."""

    definite = True

    def __init__(self, group: GroupId, index: LogIndex, reason: str):
        super().__init__(
            f"group {group}, index {index}: {reason}; this node has lost what was durable and must "
            "not go on"
        )
        self.group = group
        self.index = index


class CompactedError(LookupError):
    """The entries that were asked for are no longer in the log. The store still works."""

    definite = True

    def __init__(self, group: GroupId, index: LogIndex, first_index: LogIndex):
        super().__init__(f"group {group}: index {index} is gone, the log starts at {first_index}")
        self.group = group
        self.index = index
        self.first_index = first_index


class RecordsError(ValueError):
    """The records of a batch cannot be read: they cannot be decompressed, are malformed, or are too
    large."""

    definite = True


class RecordLengthError(RecordsError):
    """The length at the start of a record is a number of too many bytes."""


class InflateError(RecordsError):
    """The records cannot be decompressed, so nothing is known about them."""


class DecodeError(ValueError):
    """The bytes are not an encoded entry, or their checksum does not match."""

    definite = True
