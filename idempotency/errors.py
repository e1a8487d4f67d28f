"""The error that this package raises. Decisions are values, never errors."""

from __future__ import annotations


class SnapshotError(ValueError):
    """The bytes are not a snapshot of a producer table. The text says which part is wrong."""
