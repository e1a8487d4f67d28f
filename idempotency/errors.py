"""The two errors that this package raises. Decisions are values, never errors."""

from __future__ import annotations


class UnknownProfileError(LookupError):
    """Somebody asked for a profile that does not exist. The text lists those that do."""


class SnapshotError(ValueError):
    """The bytes are not a snapshot of a producer table. The text says which part is wrong."""
