"""Matchers: what a case expects of one field.

A plain value must be the field's value. A table is one of these operators:

| operator | holds if the field |
|---|---|
| `exists = true` | is there and is not null (`false`: is null, or not there) |
| `any_of = [a, b]` | is one of them |
| `at_least = n`, `at_most = n` | is a number within the bound; both may be given |
| `same_as = "$first.base_offset"` | is what the earlier answer says |
| `type = "number"` | is a number, text, boolean, list or null |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.broker.arguments.spelling import shown
from ottla.compare.fields import Field, Plain
from ottla.compare.tables import Table, is_reference

TYPES: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "text": (str,),
    "boolean": (bool,),
    "list": (list,),
    "null": (type(None),),
}


@dataclass(frozen=True)
class Matcher:
    """An operator with its operand; `operator` is `is` for a plain value."""

    operator: str
    operand: Any

    def holds(self, field: Field | None, resolve: Callable[[Any], Any]) -> bool:
        """Whether a field (None: the answer has none) is as expected."""
        if self.operator == "exists":
            there = field is not None and field.value is not None
            return there is bool(self.operand)
        if field is None:
            return False
        several = self.operator == "any_of"
        wanted = [resolve(each) for each in self.operand] if several else resolve(self.operand)
        return _HOLDS[self.operator](field.value, wanted)

    def told(self) -> str:
        """The expectation in words."""
        if self.operator == "is":
            return value_told(self.operand)
        if self.operator == "within":
            least, most = self.operand
            bounds = (("at least", least), ("at most", most))
            return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)
        if self.operator == "any_of":
            return " or ".join(map(value_told, self.operand))
        if self.operator == "same_as":
            return f"the same as {self.operand}"
        if self.operator == "type":
            return f"of type {self.operand}"
        return "a value" if self.operand else "no value"


def value_told(value: Plain) -> str:
    """A value of a field for people."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if value and value.isprintable() and len(value) <= 80 else shown(value)
    return shown(value)


def _within(value: Plain, bounds: tuple[int | None, int | None]) -> bool:
    least, most = bounds
    return (
        isinstance(value, int | float)
        and (least is None or value >= least)
        and (most is None or value <= most)
    )


def _same(value: Plain, operand: Any) -> bool:
    return type(value) is type(operand) and bool(value == operand)


_HOLDS: dict[str, Callable[[Plain, Any], bool]] = {
    "is": _same,
    "any_of": lambda value, operand: any(_same(value, each) for each in operand),
    "within": _within,
    "same_as": _same,
    "type": lambda value, operand: (
        isinstance(value, TYPES[operand]) and (operand != "number" or not isinstance(value, bool))
    ),
}


def read_matcher(told: Table, key: str, value: Any) -> Matcher:
    """The matcher for a key of an expectation. Raises `CaseError`."""
    if is_reference(value):
        return Matcher("same_as", value)
    if not isinstance(value, dict):
        return Matcher("is", value)
    inside = told.table(key, value)
    given = sorted(inside.names)
    if given and set(given) <= {"at_least", "at_most"}:
        return Matcher("within", (inside.whole("at_least", None), inside.whole("at_most", None)))
    readers: dict[str, Callable[[], Any]] = {
        "exists": lambda: inside.truth("exists"),
        "any_of": lambda: inside.take("any_of", list, "a list of values"),
        "same_as": lambda: _reference(inside),
        "type": lambda: inside.one_of("type", TYPES),
    }
    if len(given) != 1 or given[0] not in readers:
        wanted = "one of exists, any_of, at_least, at_most, same_as, type"
        raise told.wrong(key, f"has the keys {', '.join(given) or 'none'}; {wanted} is wanted")
    return Matcher(given[0], readers[given[0]]())


def _reference(inside: Table) -> str:
    value: str = inside.text("same_as")
    if not is_reference(value):
        raise inside.wrong(
            "same_as", f'is "{value}"; a reference such as $first.base_offset is wanted'
        )
    return value
