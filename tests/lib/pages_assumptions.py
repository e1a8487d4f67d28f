"""What users assume, and where it holds: `docs/reference/assumptions.md` is what this writes.

`tests/compare/assumptions.toml` has the assumptions, each with the field of a case's answer that
shows it. What a profile answers there is what the case expects of it, and tests play each case to
each profile. `tests/compare/test_assumptions.py` compares the page, and writes it with
OTTLA_REWRITE=1.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from compare_kit import every_case
from ottla.compare.case import Case, Outcome

TABLE = Path(__file__).parents[1] / "compare" / "assumptions.toml"
OUTCOME = "outcome"
PROFILES = {"Kafka": "kafka-4.3", "Redpanda": "redpanda-25.3", "Ottla": "reference"}
"""The columns of the page, and whose answers they have."""
CASES = "../../src/ottla/compare/cases"
_HEAD = """\
# Which assumptions hold on Kafka, and which on Redpanda

Written from `tests/compare/assumptions.toml` and from the cases of `ottla compare` by
`tests/lib/pages_assumptions.py`; do not edit. Each assumption is a link to the case that shows
whether it holds. If it does not, the cell says what is answered instead.

- *Kafka* is profile `kafka-4.3`. Its answers were recorded from Apache Kafka 4.3.1, those of
  several nodes from three brokers.
- *Redpanda* is profile `redpanda-25.3`. It rests on public code, tests and issues, not on a
  running broker; [profiles](profiles.md) names the source of each part.
- *Ottla* is the default, profile `reference`.

`ottla compare --target redpanda-25.3 --against kafka-4.3` shows every difference between two
profiles, byte by byte, and `--target HOST:PORT` those of your own broker
([how to compare](../how-to/compare-with-kafka.md)).
"""


class Assumption(NamedTuple):
    """One row of the table."""

    says: str
    case: str
    step: int
    field: str
    """A field that the case names at that step, or `outcome`."""
    holds: str
    """Its value if the assumption holds, as the case tells it."""


def questions() -> Mapping[str, list[Assumption]]:
    """The assumptions by the question that they belong to."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {each["asks"]: [Assumption(*row) for row in each["rows"]] for each in table["question"]}


def answer(case: Case, row: Assumption, profile: str) -> str:
    """What a profile does at the row's step. Raises `KeyError` if the case does not say."""
    expected = case.steps[row.step - 1].expected_of(profile)
    if row.field == OUTCOME:
        return expected.outcome.value
    if expected.outcome is not Outcome.ANSWERED:
        return str(expected.outcome.value)
    return expected.fields[row.field].told()


def assumptions_page() -> str:
    """The whole page."""
    cases = {each.name: each for each in every_case()}
    lines = [_HEAD]
    for asks, rows in questions().items():
        lines += [f"## {asks}", "", f"| assumption | {' | '.join(PROFILES)} |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(_cells(cases[row.case], row))} |" for row in rows]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _cells(case: Case, row: Assumption) -> Iterator[str]:
    yield f"[{row.says}]({CASES}/{row.case}.toml)"
    for profile in PROFILES.values():
        told = answer(case, row, profile)
        yield "yes" if told == row.holds else f"**no**: {_named(row.field, told)}"


def _named(field: str, told: str) -> str:
    """A value with what it is the value of."""
    name = field.removesuffix(".length").rpartition(".")[2]
    if name in {OUTCOME, "error_code"}:
        return "no error" if told == "NONE" else told
    return f"{told} {name}" if field.endswith(".length") else f"{name} {told}"
