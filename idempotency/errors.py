"""The two ways to use this package wrongly; decisions are values and never end up here."""

from __future__ import annotations


class UnknownProfileError(LookupError):
    """Somebody asked for a profile that does not exist. The text lists those that do."""


class SnapshotError(ValueError):
    """Bytes that are no snapshot of a producer table. The text says where they go wrong."""
