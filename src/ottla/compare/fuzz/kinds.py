"""Kinds of differences, so that one fault of a broker is told once and not a hundred times.

Two differences are of one kind if the same field of the same API's answer has the same two values,
where a number counts only as -1, 0 or another one. Of the fields of a step the one that says most
counts: what became of the request, then an error code, then whatever comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ottla.compare.case import Case, Request
from ottla.compare.free import without_indexes
from ottla.compare.judging import OUTCOME, Difference

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_WORD = re.compile(r"[A-Za-z_ ]+")
_PLAIN = {"0", "-1"}
_NO_NAME = re.compile(r"[^a-z0-9]+")


class Kind(NamedTuple):
    """See the module's docstring."""

    api: str
    field: str
    target: str
    other: str

    def told(self) -> str:
        """The kind in a few words."""
        return f"{self.api} {self.field}: {self._values()}"

    def slug(self) -> str:
        """The kind as the name of a file."""
        field = self.field.rpartition(".")[2]
        return _NO_NAME.sub("-", f"{self.api} {field} {self._values()}".lower()).strip("-")

    def _values(self) -> str:
        if self.target == self.other:
            plain = self.target.removeprefix("a ")
            return plain if plain == self.target else f"another {plain}"
        return f"{self.target}, not {self.other}"


def kind_of(case: Case, difference: Difference) -> Kind:
    """The kind of a difference."""
    ask = case.steps[difference.step - 1].ask
    api = ask.api if isinstance(ask, Request) else "bytes"
    told = (_value(difference.target), _value(difference.other))
    return Kind(api, without_indexes(difference.field), *told)


def first_of(differences: Iterable[Difference]) -> Difference | None:
    """The difference that says most about the first step that differs; None: there is none."""
    found = list(differences)
    if not found:
        return None
    step = min(each.step for each in found)
    return min((each for each in found if each.step == step), key=_rank)


def _rank(difference: Difference) -> int:
    if difference.field == OUTCOME:
        return 0
    return 1 if difference.field.endswith("error_code") else 2


def _value(told: str) -> str:
    if told in _PLAIN:
        return told
    if _NUMBER.fullmatch(told):
        return "a number"
    return told if _WORD.fullmatch(told) else "a value"
