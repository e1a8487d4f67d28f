"""What a broker did in a case: one reply per request, as values.

A transcript is what is judged, recorded and shown. Its answers name topics as the broker knows
them; `names` has what the case calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from ottla.broker.errors import FrameError
from ottla.broker.wire.codec import API_NAMES, known_versions, response_schema, skip_tags
from ottla.compare.case import Case, Outcome, Request, Step
from ottla.compare.errors import CompareError
from ottla.compare.fields import Field, Fields, Plain, decode
from ottla.compare.requests import Versions, version_of
from ottla.compare.tables import is_reference

_INIT_PRODUCER_ID = (22).to_bytes(2)
"""The key of that request, in its frame."""


@dataclass(frozen=True)
class Reply:
    """What became of one step that asked something."""

    step: int
    """Its number, from 1."""
    outcome: Outcome
    request: bytes
    response: bytes | None
    """The frame of the answer, with its length."""
    took: float
    """Milliseconds until the answer; 0 without one."""
    read: Callable[[], tuple[Fields, str]] = field(compare=False, repr=False)
    """Decodes the answer. Of most answers nobody asks for a field, because the bytes of two brokers
    are equal; so it is called only when somebody does."""

    @cached_property
    def _answer(self) -> tuple[Fields, str]:
        return self.read()

    @property
    def fields(self) -> Fields:
        """The fields of the answer; none without one."""
        return self._answer[0]

    @property
    def unread(self) -> str:
        """Why the answer could not be decoded; empty if it could."""
        return self._answer[1]


@dataclass(frozen=True)
class Transcript:
    """What a broker did in one case."""

    case: str
    broker: str
    """Which broker it was, for people."""
    now: int
    """Its wall clock when the case began, in ms."""
    names: Mapping[str, str]
    """The topics, by what the case calls them."""
    versions: Versions
    replies: tuple[Reply, ...]

    def reply(self, step: int) -> Reply | None:
        """The reply to a step; None for one that asks nothing."""
        return next((each for each in self.replies if each.step == step), None)

    @cached_property
    def given(self) -> Mapping[Plain, str]:
        """The producer ids that the broker gave in this case, and what to call them: another broker
        gave others."""
        asked = [each for each in self.replies if each.request[4:6] == _INIT_PRODUCER_ID]
        ids = [(each.fields.get("producer_id"), each.step) for each in asked]
        return {id_.value: f"the id of step {step}" for id_, step in ids if id_ and id_.value != -1}

    def called(self, reply: Reply) -> Fields:
        """The fields of a reply, with such producer ids by their names."""
        if not self.given:
            return reply.fields
        return {
            path: each._replace(value=self.given.get(each.value, each.value))
            if path.endswith(".producer_id")
            else each
            for path, each in reply.fields.items()
        }


def reply_to(
    step: Step,
    outcome: Outcome,
    request: bytes,
    response: bytes | None,
    *,
    took: float,
    versions: Versions,
) -> Reply:
    """The reply to a step; `response` begins with its length."""
    read = partial(read_answer, step, response, versions)
    return Reply(step.number, outcome, request, response, took, read)


def read_answer(step: Step, frame: bytes | None, versions: Versions) -> tuple[Fields, str]:
    """The fields of an answer, and why it could not be read if so; `frame` begins with its
    length."""
    if frame is None:
        return {}, ""
    ask = step.ask
    if not isinstance(ask, Request) or ask.key not in API_NAMES:
        return {}, "no schema is known for this request"
    version = version_of(ask, versions) if ask.answered_in is None else ask.answered_in
    if version not in known_versions(ask.key):
        return {}, f"no schema is known for {ask.api} {version}"
    schema = response_schema(ask.key, version)
    try:
        at = skip_tags(frame, 8) if schema.header_tags else 8
        return decode(schema.cls, frame, at), ""
    except FrameError as error:
        return {}, str(error)


def find(fields: Fields, path: str) -> tuple[str, Field | None]:
    """The field that a case calls by (the end of) its path, with its whole path. An array is found
    by its length. Raises `CompareError` if several fields are called so."""
    for name in (path, f"{path}.length"):
        if name in fields:
            return name, fields[name]
        ends = [each for each in fields if each.endswith(f".{name}")]
        if len(ends) > 1:
            raise CompareError(f"{path} is the end of {ends[0]} and of {ends[1]}; write more of it")
        if ends:
            return ends[0], fields[ends[0]]
    return path, None


def resolver(case: Case, replies: Mapping[int, Reply]) -> Callable[[Any], Any]:
    """Looks references up in the replies so far. Raises `CompareError` if there is no such
    field."""
    numbers = {each.name: each.number for each in case.steps if each.name is not None}

    def resolve(value: Any) -> Any:
        if not is_reference(value):
            return value
        name, _, path = value[1:].partition(".")
        reply = replies.get(numbers[name])
        _, field = find(reply.fields, path) if reply is not None else (path, None)
        if field is None:
            raise CompareError(f"{value}: step {numbers[name]} was not answered with such a field")
        return field.value

    return resolve


def expects_answer(step: Step) -> bool:
    """Whether Kafka's protocol has an answer to it: none with acks=0, none to mere bytes."""
    ask = step.ask
    if not isinstance(ask, Request):
        return False
    return ask.key != 0 or ask.body is not None or ask.fields.get("acks") != 0
