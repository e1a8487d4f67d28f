"""Explained differences: where Ottla's profile is known not to do what its original does.

A TOML file lists them, each with its reason and source. A listed difference does not count against
a live broker (or a recording) that does what the case says: then it is the profile that does not. A
broker that does not counts, whatever the profile does. So does a listed difference that is no
longer there: the list must not grow stale. Between two profiles a listed place is a difference if
the two differ there.

An entry about `fuzz/*` is about random requests, which need not meet it. So it names the values
that differ, too, and explains nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ottla.broker.arguments.spelling import called
from ottla.broker.profiles.named import PROFILES
from ottla.compare.free import without_indexes
from ottla.compare.judging import Difference
from ottla.compare.tables import read_file

EXPLAINED = Path(__file__).with_name("explained.toml")
"""The list that comes with Ottla."""
SCHEMA = 1
_PROFILES = tuple(each.name for each in PROFILES)


class Explanation(NamedTuple):
    """Why some differences are there."""

    case: str
    """A glob over names of cases."""
    field: str
    """The end of the field's path, without indexes."""
    step: int | None
    """Only in this step."""
    profiles: tuple[str, ...]
    """Globs over profiles."""
    reason: str
    source: str
    target: str = "*"
    """A glob over what the target answered."""
    other: str = "*"
    """A glob over what the other broker answered."""

    def about(self, case: str, profile: str) -> bool:
        """Whether it is about a case and a profile."""
        return fnmatchcase(case, self.case) and any(
            fnmatchcase(profile, each) for each in self.profiles
        )

    def explains(self, difference: Difference, profile: str) -> bool:
        """Whether it is about this difference."""
        path = without_indexes(difference.field).removesuffix(".length")
        field = self.field.removesuffix(".length")
        right_field = path == field or path.endswith(f".{field}")
        right_step = self.step in {None, difference.step}
        right_values = fnmatchcase(difference.target, self.target) and fnmatchcase(
            difference.other, self.other
        )
        right_place = right_field and right_step and right_values
        return right_place and self.about(difference.case, profile)

    def told(self) -> str:
        """The entry, for a message."""
        step = "" if self.step is None else f" step {self.step}"
        return f"{self.case}{step} {self.field}"


def load_explanations(path: Path = EXPLAINED) -> list[Explanation]:
    """The entries of a list. Raises `CaseError`."""
    told = read_file(path, path.name)
    if told.whole("schema") != SCHEMA:
        raise told.wrong("schema", f"is not {SCHEMA}, the only one there is")
    given = told.take("differences", list, "a list of tables, [[differences]]", [])
    found = []
    for number, each in enumerate(given, 1):
        entry = told.table(f"differences[{number}]", each)
        profiles = tuple(entry.texts("profiles", ["*"]))
        for glob in profiles:
            if not any(fnmatchcase(name, glob) for name in _PROFILES):
                there = ", ".join(_PROFILES)
                raise entry.wrong("profiles", f"has {called(glob)}, which is none of {there}")
        found.append(
            Explanation(
                case=entry.text("case"),
                field=entry.text("field"),
                step=entry.whole("step", None),
                profiles=profiles,
                reason=entry.text("reason"),
                source=entry.text("source"),
                target=entry.text("target", "*"),
                other=entry.text("other", "*"),
            )
        )
        entry.done()
    told.done()
    return found


def explanation_of(
    difference: Difference, explanations: Iterable[Explanation], profile: str, *, live: bool
) -> Explanation | None:
    """The entry that explains a difference. `live`: the target is a broker of its own, not another
    profile."""
    if difference.wrong if live else difference.target != difference.other:
        return None
    return next((each for each in explanations if each.explains(difference, profile)), None)
