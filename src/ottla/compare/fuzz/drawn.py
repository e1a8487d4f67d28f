"""Judges a drawn case, which nobody has written: what the other broker answers counts as right.

So a case that was found and shrunk is written with what `against` answered where the two differ,
and with what became of a request there if that was not an answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ottla.compare.case import OUTCOMES, Case, Expectation, Outcome, Request, Step
from ottla.compare.errors import CaseError
from ottla.compare.free import is_exact
from ottla.compare.fuzz.sketch import Sketch, case_of
from ottla.compare.judging import judge
from ottla.compare.running import Comparison, Result
from ottla.compare.transcript import Reply, Transcript


def judge_drawn(
    comparison: Comparison, case: Case, target: Transcript, other: Transcript
) -> Result:
    """The result of a drawn case."""
    outcomes = {each.step: each.outcome for each in other.replies}
    steps = tuple(
        step
        if not step.asks or outcomes[step.number] is Outcome.ANSWERED
        else replace(step, expect=Expectation(outcomes[step.number]))
        for step in case.steps
    )
    found = judge(replace(case, steps=steps), target, other, comparison.profile)
    unexpected = [each._replace(wrong=False, expected="") for each in found]
    return comparison.explain(case, target, other, unexpected)


def with_expectations(sketch: Sketch, result: Result) -> Sketch:
    """A sketch that says what the other broker answered where the target does not."""
    assert result.other is not None
    steps = []
    for step, told in zip(result.case.steps, sketch["steps"], strict=True):
        reply = result.other.reply(step.number)
        expected = None if reply is None else _expected(step, reply, result)
        steps.append({**told, "expect": expected} if expected else told)
    whole = {**sketch, "steps": steps}
    try:
        case_of(whole, result.case.name)
    except CaseError:  # a field that no case can name: the difference shows all the same
        return sketch
    return whole


def _expected(step: Step, reply: Reply, result: Result) -> Any:
    """What a case says of this reply; empty if it need not say anything."""
    if reply.outcome is not Outcome.ANSWERED:
        return reply.outcome.value if reply.outcome.value in OUTCOMES else None
    assert result.other is not None
    names = {real: called for called, real in result.other.names.items()}
    api = step.ask.api if isinstance(step.ask, Request) else ""
    found: dict[str, Any] = {}
    for each in result.differences:
        field = reply.fields.get(each.field) if each.step == step.number else None
        if field is not None and is_exact(api, each.field, field.value, names, result.other.now):
            found[each.field] = {"exists": False} if field.value is None else field.value
    return found
