"""Published bugs and what shows each: `docs/reference/known-bugs.md` is what this writes.

`tests/compare/known_bugs.toml` names for each bug cases of `ottla compare`, scenarios of the
simulator and seeds. `tests/compare/test_known_bugs.py` holds the table to them, compares the page,
and writes it with OTTLA_REWRITE=1.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from compare_kit import every_case
from ottla.compare.case import Case, Expectation, Outcome
from ottla.compare.explained import load_explanations
from tidy.source import repository

TABLE = Path(__file__).parents[1] / "compare" / "known_bugs.toml"
NOTHING = "nothing breaks"
CASES = "../../src/ottla/compare/cases"
SCENARIOS = "../../sim/scenarios"
BY_CHANCE = "../explanation/published-bugs.md"
_HEAD = """\
# Known bugs, and what shows each

Written from `tests/compare/known_bugs.toml` by `tests/lib/pages_bugs.py`; do not edit. Each bug is
one that somebody has published; [sources](../sources.md) says where. It is shown by one or more of:

- a *case* of `ottla compare`: a step at which a profile that has the bug answers otherwise than one
  that has not. `ottla compare --target HAS --against HAS-NOT --cases NAME` shows both.
- a *scenario* of the simulator, mostly with the mutant that brings the bug back:
  `ottla sim explain s13 --mutant M16`. [Published bugs](../explanation/published-bugs.md) tells six
  of them in full.
- a *seed*, by which a run without a script meets the bug.

"""


class ByCase(NamedTuple):
    """A step that two profiles answer differently."""

    name: str
    step: int
    has: str
    hasnt: str

    @property
    def case(self) -> Case:
        """The case itself."""
        (found,) = [each for each in every_case() if each.name == self.name]
        return found

    def expected(self, profile: str) -> Expectation:
        """What the case says of a profile at that step."""
        return self.case.steps[self.step - 1].expected_of(profile)

    @property
    def modelled(self) -> bool:
        """Whether the profile does what the case says of it; else the list explains why not."""
        return not any(each.about(self.name, self.has) for each in load_explanations())


class ByScenario(NamedTuple):
    """An act of a scenario."""

    number: str
    act: int
    mutant: str
    """Empty: none is needed."""
    ends: str
    """An invariant that the bug breaks, or `NOTHING`: the bug cannot happen here."""

    @property
    def path(self) -> Path:
        """Its file."""
        (found,) = (repository() / "sim" / "scenarios").glob(f"{self.number}_*.txt")
        return found

    @property
    def text(self) -> str:
        """Its act."""
        acts = re.split(r"^(?=> nodes)", self.path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        return acts[self.act]


class Bug(NamedTuple):
    """A row of the table."""

    source: str
    """A key of docs/sources.md."""
    what: str
    cases: Sequence[ByCase]
    scenarios: Sequence[ByScenario]
    seed: str
    """The heading of the page of published bugs below which a seed stands; empty: none does."""


def bugs() -> list[Bug]:
    """The table."""
    told = tomllib.loads(TABLE.read_text(encoding="utf-8"))["bug"]
    return [
        Bug(
            each["source"],
            each["what"],
            [ByCase(*row) for row in each.get("cases", [])],
            [ByScenario(*row) for row in each.get("scenarios", [])],
            each.get("seed", ""),
        )
        for each in told
    ]


def told(expected: Expectation) -> str:
    """What a step is answered, in a few words."""
    if expected.outcome is not Outcome.ANSWERED:
        return str(expected.outcome.value)
    codes = [each for each in expected.fields if each.endswith("error_code")]
    path = (codes or list(expected.fields))[0]
    value = expected.fields[path].told()
    return value if codes else f"{path} {value}"


def bugs_page() -> str:
    """The whole page."""
    rows = [f"| {each.source} | {each.what} | {'; '.join(_shown(each))} |" for each in bugs()]
    lines = [_HEAD + f"There are {len(rows)} bugs.", ""]
    lines += ["| bug | what goes wrong | shown by |", "|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _shown(bug: Bug) -> Iterator[str]:
    for each in bug.cases:
        name = each.name.rpartition("/")[2].replace("-", " ")
        link = f"case [{name}]({CASES}/{each.name}.toml)"
        left = f"`{each.has}` {told(each.expected(each.has))}"
        left += "" if each.modelled else " (the profile does not follow it)"
        yield f"{link}, step {each.step}: {left}, `{each.hasnt}` {told(each.expected(each.hasnt))}"
    for act in bug.scenarios:
        link = f"[{act.number}]({SCENARIOS}/{act.path.name}) act {act.act}"
        mutant = f" with mutant {act.mutant}" if act.mutant else ""
        yield f"scenario {link}{mutant}: {act.ends}"
    if bug.seed:
        yield f"[a seed]({BY_CHANCE})"
