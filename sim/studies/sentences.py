"""Sentences of a report: a text of the study's, its {names} filled from a row of its SQL.

A name may have a format as Python's `str.format` knows it, such as {lost:,}; NULL is a dash, and
percent have a space that does not break.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

from ottla.sim.studies.findings import NOTHING, Rows
from ottla.sim.studies.study import Answer, StudyError


def answer(asked: Answer, rows: Rows) -> str:
    """The sentence that a study's answer is. Raises `StudyError`."""
    if len(rows) != 1:
        raise StudyError(f"answer.sql: gives {len(rows)} rows; one is expected")
    return filled(asked.text, rows[0], "answer")


def filled(text: str, row: Mapping[str, Any], where: str) -> str:
    """A text with its {names} filled from a row. Raises `StudyError`."""
    try:
        return _Told().vformat(text, (), row)
    except KeyError as error:
        raise StudyError(f"{where}.text: no column {error}; there are {', '.join(row)}") from None
    except (AttributeError, IndexError, ValueError, TypeError) as error:
        raise StudyError(f"{where}.text: {error}") from None


class _Told(Formatter):
    """`str.format` as the rest of a report has it."""

    def format_field(self, value: Any, spec: str) -> str:
        """As `Formatter.format_field`."""
        if value is None:
            return NOTHING
        told = str(super().format_field(value, spec))
        return f"{told[:-1]}\u00a0%" if spec.endswith("%") else told
