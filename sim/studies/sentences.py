"""Sentences of a report: a text of the study, its {names} filled from a row of its SQL.

A name is a column of the row, and may have a format of Python's `str.format`, such as {lost:,}, at
most a hundred wide. A fraction without a format is shown as in tables. NULL and NaN are a dash, and
a percentage has a no-break space. Three formats are Ottla's own:

| format | what it makes of a column |
|---|---|
| `{n:seed|seeds}` | the first if n is 1 or true, otherwise the second; {names} in them are filled |
| `{us:duration}` | microseconds, written in hours, minutes or seconds |
| `{n:bounded}` | how often at most, if none of n runs was hit (`ottla.sim.sweeps.bounds`) |
| `{hits:bounded n}` | the same if so many of them were hit; *n* is the name of a column, too |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from string import Formatter
from typing import Any

from ottla.broker.arguments.spelling import listed
from ottla.sim.studies.findings import NOTHING, Rows, endless, number
from ottla.sim.studies.study import Answer, StudyError
from ottla.sim.sweeps.bounds import bounded


def answer(asked: Answer, rows: Rows) -> str:
    """The sentence of a study's answer. Raises `StudyError`."""
    if len(rows) != 1:
        raise StudyError(f"answer.sql: gives {len(rows)} rows; one is expected")
    return filled(asked.text, rows[0], "answer")


def filled(text: str, row: Mapping[str, Any], where: str) -> str:
    """A text with its {names} filled from a row. Raises `StudyError`."""
    try:
        return _Told(row).vformat(text, (), row)
    except KeyError as error:
        raise StudyError(f"{where}.text: no column {error}; there are {listed(row)}") from None
    except _FormatError as error:
        raise StudyError(f"{where}.text: {error}") from None
    except (ValueError, TypeError, OverflowError):  # unclosed braces, or a bad format in them
        raise StudyError(
            f"{where}.text: braces go around the name of a column, as in {{{next(iter(row))}}}; "
            "write {{ and }} for braces themselves"
        ) from None


class _FormatError(Exception):
    """A value cannot be shown in this format; the text says what to write."""


_WIDE = 100
"""The largest width of a format: a typing error took all memory."""
_NUMBERS = re.compile(r"\d+")
_OR, _DURATION, _BOUNDED = "|", "duration", "bounded"
_UNITS = ((3_600_000_000, "hours"), (60_000_000, "minutes"))


def duration(us: float) -> str:
    """A span of time in hours, minutes or seconds.

    >>> duration(5_400_000_000), duration(90_000_000), duration(2_812_000)
    ('1.5 hours', '1.5 minutes', '2.8 seconds')
    """
    for size, unit in _UNITS:
        if us >= size:
            return f"{us / size:,.1f} {unit}"
    return f"{us / 1e6:.1f} seconds"


class _Told(Formatter):
    """`str.format`, with numbers as in the rest of a report."""

    def __init__(self, row: Mapping[str, Any]):
        self._row = row

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, str]:
        """A column as a whole: no attribute or element of it."""
        del args
        if field_name.isdecimal():  # {} has this name
            there = ", ".join(f"{{{each}}}" for each in kwargs)
            raise _FormatError(f"{{}} names no column; write {there}")
        return kwargs[field_name], field_name

    def format_field(self, value: Any, spec: str) -> str:
        """As `Formatter.format_field`."""
        one, choice, many = spec.partition(_OR)
        if choice:
            return one if value == 1 else many
        if any(int(each) > _WIDE for each in _NUMBERS.findall(spec)):
            raise _FormatError(f"{{:{spec}}} is too wide, at most {_WIDE}")
        if value is None:
            return NOTHING
        if isinstance(value, float) and not isfinite(value):
            return endless(value)
        if spec == _DURATION and isinstance(value, int | float | Decimal):
            return duration(float(value))
        if spec.split(" ", maxsplit=1)[0] == _BOUNDED and isinstance(value, int | float | Decimal):
            return self._bounded(int(value), spec.removeprefix(_BOUNDED).strip())
        if isinstance(value, float | Decimal) and not spec:
            return number(float(value))
        try:
            told = str(super().format_field(value, spec))
        except (ValueError, TypeError, OverflowError):
            raise _FormatError(_unfit(spec, value)) from None
        return f"{told[:-1]}\u00a0%" if spec.endswith("%") else told

    def _bounded(self, value: int, of: str) -> str:
        """The bound for `value` runs without a hit; or, if `of` names a column, for `value` hits in
        that many runs."""
        if not of:
            return bounded(value)
        total = self._row[of]
        return NOTHING if total is None else bounded(int(total), value)


def _unfit(spec: str, value: Any) -> str:
    if isinstance(value, int | float | Decimal):
        return f"{{:{spec}}} is no format of a number; leave it out, or write {{:,}} or {{:.1f}}"
    return f"{{:{spec}}} is for numbers, and the column has none; leave it out"
