"""Reads what a case expects, strictly: outcomes, and fields that the answer can have.

A field that the answer of that version has not, an error code that Kafka has not and an outcome
that there is not are refused when the case is loaded.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.arguments.spelling import no_such
from ottla.broker.wire.client_requests import API_KEYS
from ottla.broker.wire.codec import error_names, field_names, known_versions, response_schema
from ottla.compare.case import OUTCOMES, Act, Expectation, Outcome, Raw, Request, Wait
from ottla.compare.fields import RECORDS_FIELDS
from ottla.compare.matching import Matcher, read_matcher
from ottla.compare.requests import version_of
from ottla.compare.tables import Table


def read_expectation(
    told: Table, key: str, ask: Request | Raw | Wait | Act, value: Any, base: Expectation | None
) -> Expectation:
    """An expectation: an outcome, or fields of an answer. `base`: fields hold where the table has
    nothing else."""
    if isinstance(value, str):
        if value not in OUTCOMES:
            raise told.wrong(key, f"is {no_such(value, OUTCOMES, all_of_them=True)}")
        return Expectation(Outcome(value))
    inside = told.table(key, value)
    took = inside.anything("took")
    matchers = {
        path: _matcher(inside, path, inside.anything(path), ask) for path in list(inside.names)
    }
    kept = dict(base.fields) if base is not None else {}
    return Expectation(
        Outcome.ANSWERED,
        {**kept, **matchers},
        None if took is None else read_matcher(inside, "took", took),
    )


def _matcher(inside: Table, path: str, value: Any, ask: Request | Raw | Wait | Act) -> Matcher:
    if not isinstance(ask, Request) or ask.key not in API_KEYS.values():
        raise inside.wrong(path, "is a field; only an outcome can be expected here")
    version = version_of(ask, {}) if ask.answered_in is None else ask.answered_in
    if version not in known_versions(ask.key):
        unknown = f"the fields of {ask.api} {version} are not known"
        raise inside.wrong(path, f"is a field; {unknown}, so only an outcome can be expected here")
    names = _field_names(ask, version)
    name = path.replace("]", "").split(".")[-1].partition("[")[0]
    if name == "length":
        name = path.split(".")[-2].partition("[")[0] if "." in path else ""
    if name not in names:
        what = f"is no field of the answer of {ask.api} {version}: there is no"
        raise inside.wrong(path, f"{what} {no_such(name, sorted(names), all_of_them=True)}")
    matcher = read_matcher(inside, path, value)
    if name == "error_code":
        _check_code(inside, path, matcher)
    return matcher


def _check_code(inside: Table, path: str, matcher: Matcher) -> None:
    given = matcher.operand if matcher.operator == "any_of" else [matcher.operand]
    for each in given if matcher.operator in {"is", "any_of"} else ():
        if not isinstance(each, str) or each not in error_names():
            told = no_such(str(each), sorted(error_names()))
            wanted = "" if ";" in told else "; a name of Kafka's protocol guide is wanted"
            raise inside.wrong(path, f"is {told}{wanted}")


def _field_names(ask: Request, version: int) -> frozenset[str]:
    names = field_names(response_schema(ask.key, version).cls)
    return names | RECORDS_FIELDS if "records" in names else names
