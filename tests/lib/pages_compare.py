"""The cases of `ottla compare` as a page: `docs/reference/compare-cases.md` is what this writes.

What Kafka answers is its recording; what profiles do instead stands in the cases and in the list of
explained differences. `tests/compare/test_page.py` compares the two, and writes the page with
OTTLA_REWRITE=1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import groupby

from compare_kit import every_case, kafka
from ottla.compare.case import Act, Case, Expectation, Outcome, Step, Wait
from ottla.compare.explained import Explanation, load_explanations
from ottla.compare.telling import brief, summary

CASES = "../../src/ottla/compare/cases"
EVERY = "*"
"""The case of an explanation that is about all cases; docs/reference/profiles.md says them."""
_HEAD = """\
# Cases of `ottla compare`

Written from the cases, from the recorded answers of Apache Kafka 4.3.1 and from the list of
explained differences by `tests/lib/pages_compare.py`; do not edit. Each rule is a link to the case
that proves it. A step is answered with its error codes; *closed*, *no answer* and *silence* are
what became of the connection, and *kill 1* is what was done to a node. Profiles that are not named
answer as Kafka does. *Said* is what was not recorded, because it needs other settings, but read.

"""


def cases_page() -> str:
    """The whole page."""
    cases, explanations = every_case(), load_explanations()
    lines = [_HEAD + f"There are {len(cases)} cases."]
    for folder, some in groupby(cases, key=lambda each: each.name.partition("/")[0]):
        lines += ["", f"## {folder}", "", "| rule | source | Kafka 4.3.1 | otherwise |"]
        lines.append("|---|---|---|---|")
        lines += [_row(each, explanations) for each in some]
    return "\n".join(lines) + "\n"


def _row(case: Case, explanations: Sequence[Explanation]) -> str:
    otherwise = "; ".join((*_profiles(case), *_explained(case, explanations), *_unsaid(case)))
    rule = case.name.rpartition("/")[2].replace("-", " ").capitalize()
    cells = (
        f"[{rule}]({CASES}/{case.name}.toml): {_escaped(case.title)}",
        ", ".join(case.sources),
        _answered(case),
        otherwise,
    )
    return f"| {' | '.join(cells)} |"


def _answered(case: Case) -> str:
    """What Kafka answers, step by step; an act stands as what it is."""
    if not case.own_cluster:
        return summary(kafka().play(case, kafka().versions()))
    if case.settings:
        told = (_said(each) for each in case.steps)
        return f"*said:* {', '.join(filter(None, told))}"
    replies = {each.step: each for each in kafka().play(case, kafka().versions()).replies}
    told = (
        each.ask.told() if isinstance(each.ask, Act) else brief(replies[each.number])
        for each in case.steps
        if not isinstance(each.ask, Wait)
    )
    return ", ".join(told)


def _said(step: Step) -> str:
    """What the case says of a step: its error codes, else its first field, else its outcome."""
    if not step.asks:
        return ""
    fields = step.expect.fields
    path = next((each for each in fields if each.endswith("error_code")), next(iter(fields), None))
    if path is None:
        return str(step.expect.outcome.value)
    told = fields[path].told()
    return told if path.endswith("error_code") else f"{path.rpartition('.')[2]} {told}"


def _unsaid(case: Case) -> Iterator[str]:
    """Profiles that the case says nothing of."""
    alike: dict[str, list[str]] = {}
    for profile, why in case.left_out.items():
        alike.setdefault(why, []).append(profile)
    for why, profiles in alike.items():
        yield f"{', '.join(profiles)}: left out, {why}"


def _profiles(case: Case) -> Iterator[str]:
    """What profiles do instead, those together that do the same."""
    instead: dict[str, list[str]] = {}
    for step in case.steps:
        for profile, expected in step.differs.items():
            what = _told(expected, step.expect)
            instead.setdefault(profile, []).append(f"step {step.number} {what}")
    alike: dict[str, list[str]] = {}
    for profile, steps in instead.items():
        alike.setdefault(", ".join(steps), []).append(profile)
    for told, profiles in alike.items():
        yield f"{', '.join(profiles)}: {told}"


def _told(expected: Expectation, usual: Expectation) -> str:
    """The error code if that is another one, else the first field that is."""
    if expected.outcome is not Outcome.ANSWERED:
        return str(expected.outcome.value)
    if expected.fields == usual.fields:
        return "at once" if usual.took is not None else "answered"
    changed = [path for path, each in expected.fields.items() if usual.fields.get(path) != each]
    codes = [path for path in changed if path.endswith("error_code")]
    path = (codes or changed)[0]
    told = expected.fields[path].told()
    return told if codes else f"{path.rpartition('.')[2]} {told}"


def _explained(case: Case, explanations: Sequence[Explanation]) -> Iterator[str]:
    """Why Ottla does something else; what is so in every case is no news in a row."""
    about = (each for each in explanations if each.case != EVERY)
    found = [each for each in about if fnmatchcase(case.name, each.case)]
    yield from dict.fromkeys(each.reason for each in found)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("[", "(").replace("]", ")")
