"""What can be wrong with what a user hands in, each told in one line."""

from __future__ import annotations


class CompareError(Exception):
    """Nothing can be compared: the text says why, and what to do."""


class CaseError(CompareError):
    """A file is no case: the text names the file, the place in it, and what is accepted."""


class UnplayableError(CompareError):
    """A broker cannot have the topics of a case, because it refuses their configs."""
