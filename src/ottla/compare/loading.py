"""Loads cases from TOML, strictly: whatever is not understood is refused, in one line.

A refusal names the file, the path in it, what is wrong and what is accepted. Each request is built
once while its file is loaded, so a value that does not fit its field is found then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ottla.broker.arguments.spelling import called, no_such
from ottla.broker.profiles.named import PROFILES
from ottla.broker.topics.names import name_refusal
from ottla.broker.wire.client_requests import API_KEYS
from ottla.broker.wire.codec import known_versions
from ottla.compare.batches import LARGEST_VALUE, Batch
from ottla.compare.case import (
    MAIN,
    SCHEMA,
    TOPIC,
    Case,
    Expectation,
    Raw,
    Request,
    Step,
    Topic,
    Wait,
)
from ottla.compare.errors import CaseError, CompareError
from ottla.compare.expectations import read_expectation
from ottla.compare.requests import Situation, frame_of
from ottla.compare.shorthand import NO_TOPIC_ID, SHORTHANDS, records
from ottla.compare.tables import Table, is_reference, read_file

MOST_STEPS = 300
LONGEST_WAIT = 60_000
"""Milliseconds."""
MOST_PARTITIONS = 1000
LONGEST_NAME = 80
"""Characters of a topic as a case calls it: on a broker the names of the run and of the case stand
before it."""
_INT16 = (-(1 << 15), (1 << 15) - 1)
_PROFILES = tuple(each.name for each in PROFILES)
_PLAIN = frozenset({int, bool, bytes, type(None)})
"""Types of values that are no references and have none in them."""
_NAMED_KEYS = ("name", "topic", "topic_names")
"""Fields of requests that name a topic."""


def load(path: Path, name: str | None = None) -> Case:
    """The case of a file. Raises `CaseError`."""
    told = read_file(path, path.name if name is None else f"{name}.toml")
    return read_case(told, name or path.stem)


def read_case(told: Table, name: str, *, build: bool = True) -> Case:
    """The case of a table. `build` builds each request once, to find a value that does not fit its
    field; who knows that all fit leaves it. Raises `CaseError`."""
    schema = told.whole("schema")
    if schema != SCHEMA:
        raise told.wrong("schema", f"is {schema}; {SCHEMA} is the only one there is")
    title, sources = told.text("title"), tuple(told.texts("source"))
    if not title.strip() or not sources:
        raise told.wrong(
            "title" if sources else "source", "is empty; say what the rule is, and whose"
        )
    topics = _topics(told)
    absent = tuple(told.texts("absent", []))
    names = [*(each.name for each in topics), *absent]
    _check_topics(told, names)
    steps = _steps(told, names, build=build)
    case = Case(
        name=name,
        title=title,
        sources=sources,
        needs=_needs(told, steps),
        topics=topics,
        absent=absent,
        steps=steps,
    )
    told.done()
    return case


def _topics(told: Table) -> tuple[Topic, ...]:
    given = told.anything("topics")
    if given is None:
        return (Topic(TOPIC, 1, {}),)
    inside = told.table("topics", given)
    found = []
    for name in list(inside.names):
        one = inside.table(name, inside.anything(name))
        configs = one.table("configs", one.anything("configs", {}))
        texts = {key: configs.text(key) for key in list(configs.names)}
        found.append(Topic(name, one.within("partitions", 1, MOST_PARTITIONS, 1), texts))
        one.done()
    return tuple(found)


def _check_topics(told: Table, names: list[str]) -> None:
    """Names of topics that a broker would refuse as part of a longer name, and doubles."""
    for number, name in enumerate(names):
        refusal = name_refusal(name)
        if refusal or len(name) > LONGEST_NAME:
            why = refusal or f"at most {LONGEST_NAME} characters are possible"
            raise CaseError(f"{told.file}: topics or absent name {called(name)}: {why}")
        if name in names[:number]:
            raise CaseError(f"{told.file}: topics and absent name {called(name)} twice")


def _needs(told: Table, steps: Iterable[Step]) -> dict[str, int | None]:
    """The versions a target must serve: those that steps name, any of an API whose steps name none,
    and those in `requires`."""
    requests = [each.ask for each in steps if isinstance(each.ask, Request)]
    asks = [each for each in requests if each.api in API_KEYS and not each.unserved]
    found: dict[str, int | None] = {each.api: None for each in asks}
    found |= {each.api: each.version for each in asks if each.version is not None}
    inside = told.table("requires", told.anything("requires", {}))
    for api in list(inside.names):
        if api not in API_KEYS:
            raise inside.wrong(api, f"is no API: there is no {no_such(api, API_KEYS)}")
        found[api] = inside.whole(api)
    return found


# ---- steps


def _steps(told: Table, names: list[str], *, build: bool) -> tuple[Step, ...]:
    given = told.take("steps", list, "a list of tables, [[steps]]")
    if not 1 <= len(given) <= MOST_STEPS:
        raise told.wrong("steps", f"has {len(given)} elements; 1 to {MOST_STEPS} are possible")
    known: set[str] = set()
    steps: list[Step] = []
    for number, each in enumerate(given, 1):
        step = _step(told.table(f"steps[{number}]", each), number, names, build=build)
        if step.pipelined and (not steps or isinstance(steps[-1].ask, Wait)):
            where = f"steps[{number}].pipelined"
            raise told.wrong(where, "is true; there is no request just before it")
        _check_references(told, step, known)
        if step.name in known:
            raise told.wrong(f"steps[{number}].name", f"is {step.name}, as of an earlier step")
        if step.name is not None:
            known.add(step.name)
        steps.append(step)
    return tuple(steps)


def _check_references(told: Table, step: Step, known: set[str]) -> None:
    for text in (*step.refers, *_references((step.expect, *step.differs.values()))):
        named = text[1:].partition(".")[0]
        if named not in known:
            where = f"steps[{step.number}]"
            raise told.wrong(where, f"refers to {text}; no earlier step has the name {named}")


def _references(value: Any) -> list[str]:
    """All references in a value. No generators: this looks at each value of each drawn request."""
    if isinstance(value, str):
        return [value] if is_reference(value) else []
    if isinstance(value, Batch):  # a record may look like a reference, and is none
        inside: Iterable[Any] = (value.producer, value.epoch, value.sequence)
    elif isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    elif hasattr(value, "__dataclass_fields__"):
        inside = vars(value).values()
    else:
        return []
    return [found for each in inside if type(each) not in _PLAIN for found in _references(each)]


def _step(told: Table, number: int, names: list[str], *, build: bool) -> Step:
    ask = _ask(told)
    if isinstance(ask, Wait):
        _check_wait(told)
    if isinstance(ask, Request):
        _check_names(told, ask.fields, names)
    if isinstance(ask, Request) and build:
        _try(told, ask)
    expect = read_expectation(told, "expect", ask, told.anything("expect", "answered"), None)
    differs = told.table("differs", told.anything("differs", {}))
    found: dict[str, Expectation] = {}
    for profiles in list(differs.names):
        instead = read_expectation(differs, profiles, ask, differs.anything(profiles), expect)
        for each in map(str.strip, profiles.split(",")):
            if each not in _PROFILES:
                raise differs.wrong(profiles, f"is {no_such(each, _PROFILES, all_of_them=True)}")
            found[each] = instead
    step = Step(
        number=number,
        name=told.text("name", None),
        ask=ask,
        connection=told.text("connection", MAIN),
        pipelined=told.truth("pipelined"),
        expect=expect,
        differs=found,
        refers=tuple(_references(ask)),
    )
    told.done()
    return step


def _check_wait(told: Table) -> None:
    for key in told.names:
        raise told.wrong(key, "is beside a wait, which sends nothing; wait stands alone")


def _ask(told: Table) -> Request | Raw | Wait:
    words = (*SHORTHANDS, "request", "raw", "text", "wait")
    given = [each for each in words if each in told.names]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise CaseError(
            f"{told.file}: {told.path} has {found}; one of {', '.join(words)} is wanted"
        )
    (word,) = given
    if word == "raw":
        return Raw(told.hexadecimal("raw"))
    if word == "text":
        return Raw(told.text("text").encode())
    if word == "wait":
        return Wait(told.within("wait", 1, LONGEST_WAIT))
    inside = told.table(word, told.anything(word))
    return _any_request(inside) if word == "request" else _short_request(word, inside)


def _frame_options(inside: Table) -> dict[str, Any]:
    null_id = inside.truth("null_client_id")
    client_id = None if null_id else inside.text("client_id", "ottla")
    if client_id is not None and len(client_id.encode()) > _INT16[1]:
        raise inside.wrong("client_id", f"is too long; at most {_INT16[1]} bytes are possible")
    return {
        "version": inside.within("version", *_INT16, None),
        "unserved": inside.truth("unserved"),
        "answered_in": inside.within("answered_in", *_INT16, None),
        "client_id": client_id,
        "cut": inside.within("cut_frame", 0, LARGEST_VALUE, 0),
        "tail": inside.hexadecimal("tail_frame"),
    }


def _short_request(word: str, inside: Table) -> Request:
    api, read = SHORTHANDS[word]
    options = _frame_options(inside)
    _check_version(inside, api, options)
    return Request(api, API_KEYS[api], fields=read(inside), **options)


def _any_request(inside: Table) -> Request:
    """`request`: any API by its name with `fields`, or by a number, with the bytes of a body."""
    options = _frame_options(inside)
    body = inside.hexadecimal("body") if "body" in inside.names else None
    if "key" in inside.names:
        key = inside.within("key", *_INT16)
        inside.done()
        if options["version"] is None:
            raise inside.wrong("version", "is missing; a key has no usual version")
        return Request(str(key), key, fields={}, body=body or b"", **options)
    api = inside.text("api")
    if api not in API_KEYS:
        raise inside.wrong("api", f"is {no_such(api, API_KEYS, all_of_them=True)}")
    if body is None:
        _check_version(inside, api, options)
    given = inside.anything("fields", {})
    inside.table("fields", given)
    fields = _with_records(inside, "fields", given)
    inside.done()
    return Request(api, API_KEYS[api], fields=fields, body=body, **options)


def _with_records(inside: Table, path: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_with_records(inside, f"{path}[{n}]", each) for n, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {
        key: records(inside.table(f"{path}.{key}", each))
        if key == "records"
        else _with_records(inside, f"{path}.{key}", each)
        for key, each in value.items()
    }


def _check_version(inside: Table, api: str, options: Mapping[str, Any]) -> None:
    known, version = known_versions(API_KEYS[api]), options["version"]
    if version is not None and version not in known:
        possible = f"{known[0]} to {known[-1]} are possible, or a request with a body"
        raise inside.wrong("version", f"is {version}; of {api} {possible}")


def _check_names(told: Table, value: Any, names: list[str], key: str = "") -> None:
    """A topic must be one of the case, or none that any broker could have: nothing else on a live
    broker is touched. Raises `CaseError`."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name != "configs":
                _check_names(told, each, names, name)
    elif isinstance(value, list):
        for each in value:
            _check_names(told, each, names, key)
    elif isinstance(value, str) and key in _NAMED_KEYS:
        unused = value == "" or is_reference(value)
        if value not in names and not unused and not name_refusal(value):
            there = ", ".join(map(called, names)) or "none"
            what = f"names the topic {called(value)}; topics and absent have {there}"
            raise CaseError(f"{told.file}: {told.path} {what}")


def _try(told: Table, request: Request) -> None:
    """Build the request once, with any value for what is known only later."""

    def resolve(value: Any) -> Any:
        if not is_reference(value):
            return value
        return NO_TOPIC_ID if value.endswith("topic_id") else 0

    try:
        frame_of(request, 0, Situation({}, {}, 0, resolve))
    except CompareError as error:
        raise CaseError(f"{told.file}: {told.path}: {error}") from None
