"""Loads cases from TOML, strictly: whatever is not understood is refused, in one line.

A refusal names the file, the path in it, what is wrong and what is accepted. Each request is built
once while its file is loaded, so a value that does not fit its field is found then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ottla.broker.arguments.spelling import called, no_such, shown
from ottla.broker.profiles.named import PROFILES
from ottla.broker.topics.names import name_refusal
from ottla.broker.wire.client_requests import API_KEYS
from ottla.compare.asking import read_ask, read_nodes
from ottla.compare.batches import Batch
from ottla.compare.case import (
    LEADER,
    MAIN,
    MOST_NODES,
    NODES_SCHEMA,
    SCHEMA,
    SETTINGS,
    TOPIC,
    Act,
    Case,
    Expectation,
    Request,
    Step,
    Topic,
    Wait,
)
from ottla.compare.errors import CaseError, CompareError
from ottla.compare.expectations import read_expectation
from ottla.compare.faults import check_nodes
from ottla.compare.requests import Situation, frame_of
from ottla.compare.shorthand import NO_TOPIC_ID
from ottla.compare.tables import Table, is_reference, read_file

MOST_STEPS = 300
MOST_PARTITIONS = 1000
LARGEST_SETTING = 1_000_000_000
LONGEST_NAME = 80
"""Characters of a topic as a case calls it: on a broker the names of the run and of the case stand
before it."""
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
    """The case of a table. With `build`, each request is built once, which finds values that do not
    fit their fields. Pass False if all values are known to fit. Raises `CaseError`."""
    schema = told.whole("schema")
    if schema not in (SCHEMA, NODES_SCHEMA):
        raise told.wrong("schema", f"is {schema}; {SCHEMA} and {NODES_SCHEMA} are possible")
    nodes = told.within("nodes", 1, MOST_NODES, 1)
    title, sources = told.text("title"), tuple(told.texts("source"))
    if not title.strip() or not sources:
        raise told.wrong(
            "title" if sources else "source", "is empty; say what the rule is, and whose"
        )
    topics = _topics(told, nodes)
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
        nodes=nodes,
        left_out=_left_out(told),
        settings=_settings(told),
    )
    told.done()
    check_nodes(told, case, schema)
    return case


def _left_out(told: Table) -> dict[str, str]:
    """By profile: why the case says nothing of it."""
    inside = told.table("left_out", told.anything("left_out", {}))
    found: dict[str, str] = {}
    for profiles in list(inside.names):
        why = inside.text(profiles)
        if not why.strip():
            raise inside.wrong(profiles, "is empty; say why the case says nothing of it")
        found |= dict.fromkeys(_profiles(inside, profiles), why)
    return found


def _settings(told: Table) -> dict[str, int]:
    """Settings of the case's cluster."""
    inside = told.table("settings", told.anything("settings", {}))
    found = {each: inside.within(each, 1, LARGEST_SETTING, None) for each in SETTINGS}
    inside.done()
    return {name: value for name, value in found.items() if value is not None}


def _profiles(inside: Table, key: str) -> list[str]:
    """The profiles that a key names."""
    found = [each.strip() for each in key.split(",")]
    for each in found:
        if each not in _PROFILES:
            raise inside.wrong(key, f"is {no_such(each, _PROFILES, all_of_them=True)}")
    return found


def _topics(told: Table, nodes: int) -> tuple[Topic, ...]:
    everywhere = tuple(range(1, nodes + 1))
    given = told.anything("topics")
    if given is None:
        return (Topic(TOPIC, 1, {}, everywhere),)
    inside = told.table("topics", given)
    found = []
    for name in list(inside.names):
        one = inside.table(name, inside.anything(name))
        configs = one.table("configs", one.anything("configs", {}))
        texts = {key: configs.text(key) for key in list(configs.names)}
        partitions = one.within("partitions", 1, MOST_PARTITIONS, 1)
        replicas = read_nodes(one, "replicas") if "replicas" in one.names else everywhere
        found.append(Topic(name, partitions, texts, replicas))
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
        if step.pipelined and (not steps or not steps[-1].asks):
            where = f"steps[{number}].pipelined"
            raise told.wrong(where, "is true; there is no request just before it")
        _check_references(told, step, known)
        if step.name in known:
            raise told.wrong(f"steps[{number}].name", f"is {step.name}, as of an earlier step")
        if step.name is not None and not step.in_flight:
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
    ask = read_ask(told)
    if isinstance(ask, Wait | Act):
        _check_alone(told)
    if isinstance(ask, Request):
        _check_names(told, ask.fields, names)
    if isinstance(ask, Request) and build:
        _try(told, ask)
    expect = read_expectation(told, "expect", ask, told.anything("expect", "answered"), None)
    differs = told.table("differs", told.anything("differs", {}))
    found: dict[str, Expectation] = {}
    for profiles in list(differs.names):
        instead = read_expectation(differs, profiles, ask, differs.anything(profiles), expect)
        found |= dict.fromkeys(_profiles(differs, profiles), instead)
    step = Step(
        number=number,
        name=told.text("name", None),
        ask=ask,
        connection=told.text("connection", MAIN),
        pipelined=told.truth("pipelined"),
        expect=expect,
        differs=found,
        refers=tuple(_references(ask)),
        node=_node(told),
        in_flight=told.truth("in_flight"),
    )
    told.done()
    return step


def _node(told: Table) -> int | str:
    """Where a step goes."""
    node: int | str = told.anything("node", 1)
    right = isinstance(node, int) and not isinstance(node, bool) and 1 <= node <= MOST_NODES
    if node != LEADER and not right:
        raise told.wrong("node", f'is {shown(node)}; a number from 1 or "{LEADER}" is wanted')
    return node


def _check_alone(told: Table) -> None:
    for key in told.names:
        raise told.wrong(key, "is beside a step that sends nothing; such a step stands alone")


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
