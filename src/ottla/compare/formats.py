"""A comparison for programs: as one JSON object, and as JUnit's XML for a CI.

Of random requests the results are the differences, one of each kind; how much was drawn stands
beside them, in JUnit as a test that passes.
"""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

from ottla.compare.running import Comparison, Result
from ottla.compare.telling import result_lines
from ottla.compare.transcript import Transcript

JSON_SCHEMA = 1


def in_json(comparison: Comparison) -> str:
    """Everything: what was asked, what each answered, and where they differ."""
    told = {
        "schema": JSON_SCHEMA,
        "target": comparison.target.name,
        "against": comparison.other.name,
        "profile": comparison.profile,
        "status": comparison.status,
        "ended": comparison.ended,
        "counts": comparison.counts(),
        "drawn": None if comparison.drawn is None else comparison.drawn._asdict(),
        "stale": [each._asdict() for each in comparison.stale()],
        "cases": [_case(each) for each in comparison.results],
    }
    return json.dumps(told, indent=1) + "\n"


def _case(result: Result) -> dict[str, Any]:
    return {
        "case": result.case.name,
        "title": result.case.title,
        "source": list(result.case.sources),
        "result": result.word,
        "left_out": result.left_out,
        "differences": [each._asdict() for each in result.differences],
        "explained": [
            {**each._asdict(), "reason": why.reason, "source": why.source}
            for each, why in result.explained
        ],
        "target": _replies(result.target),
        "against": _replies(result.other),
    }


def _replies(played: Transcript | None) -> list[dict[str, Any]]:
    if played is None:
        return []
    return [
        {
            "step": each.step,
            "outcome": each.outcome.value,
            "took_ms": each.took,
            "request": each.request.hex(),
            "answer": None if each.response is None else each.response.hex(),
            "fields": {path: field.value for path, field in each.fields.items()},
        }
        for each in played.replies
    ]


def in_junit(comparison: Comparison) -> str:
    """A test suite: a case is a test, one that differs a failure, one left out is skipped. What has
    ended too early has an error."""
    counts = comparison.counts()
    stale, early = comparison.stale(), comparison.ended
    suite = ET.Element(
        "testsuite",
        name=f"ottla compare: {comparison.target.name} against {comparison.other.name}",
        tests=str(
            len(comparison.results) + len(stale) + (comparison.drawn is not None) + bool(early)
        ),
        failures=str(counts["differs"] + len(stale)),
        skipped=str(counts["left out"]),
        errors=str(int(bool(early))),
    )
    for each in comparison.results:
        folder, _, name = each.case.name.rpartition("/")
        took = sum(reply.took for reply in each.target.replies) if each.target else 0.0
        test = ET.SubElement(
            suite,
            "testcase",
            classname=_printable(folder or "cases"),
            name=_printable(name),
            time=f"{took / 1000:.3f}",
        )
        if each.left_out:
            ET.SubElement(test, "skipped", message=_printable(each.left_out))
        elif each.differences:
            failure = ET.SubElement(test, "failure", message=_printable(each.case.title))
            failure.text = "\n".join(map(_printable, result_lines(each)))
    if comparison.drawn is not None:
        told = f"seed {comparison.drawn.seed}, {comparison.drawn.steps} steps"
        if comparison.drawn.left_out:
            told += (
                f", {comparison.drawn.left_out} of {comparison.drawn.sequences} sequences left out"
            )
        ET.SubElement(suite, "testcase", classname="fuzz", name=told)
    for why in stale:
        test = ET.SubElement(suite, "testcase", classname="explained", name=why.told())
        ET.SubElement(test, "failure", message="is listed as explained, and no longer differs")
    if early:
        test = ET.SubElement(suite, "testcase", classname="compare", name="the end")
        ET.SubElement(test, "error", message=_printable(early))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, "unicode") + "\n"


def _printable(line: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in line)
