"""The page of a comparison: what differs first, then every case with what each broker answered.

A case is one line that opens to its steps. One that differs is open, with the fields that differ
and the bytes of the request and of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from ottla.compare.running import Comparison, Result
from ottla.compare.telling import brief, dump, step_told, verdict
from ottla.report.page.document import document, facts, header, section, table

STYLE = Path(__file__).with_name("compare.css")
_MARKS = {"alike": "good", "explained": "plain", "left out": "plain", "differs": "bad"}


def page(comparison: Comparison) -> str:
    """The whole file."""
    target, other = comparison.target.name, comparison.other.name
    counts = comparison.counts()
    alike = comparison.status == 0
    differing = counts["differs"]
    told = "1 case differs" if differing == 1 else f"{differing} cases differ"
    short = "ended too early" if comparison.ended else "the list is stale"
    badge = ("good", "alike") if alike else ("bad", told if differing else short)
    fine = (
        "Every field of every answer is compared. Only ids, addresses, election counts and the "
        f"words of messages may differ. Cases are read for profile {escape(comparison.profile)}."
    )
    sections = [
        header("Brokers compared", badge, verdict(comparison), fine),
        section("In figures", facts((word, str(count)) for word, count in counts.items())),
        *_stale(comparison),
        *_folders(comparison),
    ]
    return document(f"{target} against {other}", sections, STYLE)


def _stale(comparison: Comparison) -> Iterator[str]:
    stale = comparison.stale()
    if stale:
        rows = "".join(
            f"<tr><td>{escape(each.told())}</td><td>{escape(each.reason)}</td></tr>"
            for each in stale
        )
        yield section("Listed, and no longer different", table(("entry", "reason given"), rows))


def _folders(comparison: Comparison) -> Iterator[str]:
    def by_result(result: Result) -> tuple[bool, str, str]:
        folder, _, name = result.case.name.rpartition("/")
        return result.word != "differs", folder, name

    differing = sorted(comparison.results, key=by_result)
    for name, results in groupby(differing, key=_heading):
        yield section(name, "".join(map(_case, results)))


def _heading(result: Result) -> str:
    folder = result.case.name.rpartition("/")[0]
    return "What differs" if result.word == "differs" else folder or "In no folder"


def _case(result: Result) -> str:
    case, word = result.case, result.word
    opened = " open" if word == "differs" else ""
    return (
        f'<details class="case"{opened}><summary><span class="mark {_MARKS[word]}">{word}</span>'
        f'{escape(case.title)}<span class="fine">{escape(case.name)}</span></summary><div>'
        f'<p class="fine">Source: {escape(", ".join(case.sources))}</p>{_inside(result)}'
        "</div></details>"
    )


def _inside(result: Result) -> str:
    if result.target is None or result.other is None:
        return f"<p>{escape(result.left_out)}</p>"
    heads = ("step", result.target.broker, result.other.broker)
    rows = "".join(_step_rows(result))
    found = [table(heads, rows)]
    if result.differences:
        named = ("field", "#byte", result.target.broker, result.other.broker, "the case says")
        found.append(table(named, "".join(_difference_rows(result))))
        found += _dumps(result)
    if result.explained:
        told = "".join(
            f"<tr><td>{each.step}</td><td class='path'>{escape(each.field)}</td>"
            f"<td>{escape(each.target)}</td><td>{escape(each.other)}</td>"
            f"<td>{escape(why.reason)} ({escape(why.source)})</td></tr>"
            for each, why in result.explained
        )
        found.append(table(("step", "field", *heads[1:3], "explained by"), told))
    return "".join(found)


def _step_rows(result: Result) -> Iterator[str]:
    assert result.target is not None
    assert result.other is not None
    for step in result.case.steps:
        mine, others = (each.reply(step.number) for each in (result.target, result.other))
        told = escape(step_told(step, result.target.versions))
        if mine is None or others is None:
            yield f"<tr><td>{told}</td><td></td><td></td></tr>"
            continue
        answers = f"<td>{escape(brief(mine))}</td><td>{escape(brief(others))}</td>"
        yield f"<tr><td>{told}</td>{answers}</tr>"


def _difference_rows(result: Result) -> Iterator[str]:
    for each in result.differences:
        place = str(each.start) if each.start >= 0 else ""
        yield (
            f'<tr><td class="path">step {each.step}: {escape(each.field)}</td>'
            f'<td class="n">{place}</td><td class="bad">{escape(each.target)}</td>'
            f"<td>{escape(each.other)}</td><td>{escape(each.expected)}</td></tr>"
        )


def _dumps(result: Result) -> Iterator[str]:
    assert result.target is not None
    for number in dict.fromkeys(each.step for each in result.differences):
        reply = result.target.reply(number)
        if reply is None:
            continue
        here = [each for each in result.differences if each.step == number and each.start >= 0]
        first = min(here, default=None, key=lambda each: each.start)
        yield f"<p>Step {number}, request</p>{_pre(dump(reply.request))}"
        if reply.response is not None:
            yield f"<p>Step {number}, answer</p>{_pre(dump(reply.response, first))}"


def _pre(lines: Iterator[str]) -> str:
    return f"<pre>{escape(chr(10).join(lines))}</pre>"
