"""Cases: what a file says, as values.

A case is one rule of Kafka's protocol: steps that ask, and what each profile answers. It is a TOML
file whose name is the rule:

    schema = 1
    title = "A batch that leaves a sequence number out is refused, and nothing is stored"
    source = ["K-RULES 13"]

    [[steps]]
    produce = { producer = 7, sequence = 0, records = 2 }
    expect = { error_code = "NONE", base_offset = 0 }

    [[steps]]
    produce = { producer = 7, sequence = 3 }
    expect = { error_code = "OUT_OF_ORDER_SEQUENCE_NUMBER", base_offset = -1 }

**Topics.** A case has a topic `t` of one partition unless `topics` names others. `absent` are names
of topics that there are not. Whatever a step calls by such a name is a topic of this run alone, so
no case meets another, or what a broker is used for.

**Steps** go over one connection unless `connection` names another. A step waits for its answer
before the next begins; one with `pipelined = true` leaves in the same write as the step before.

**Expectations.** `expect` is what Kafka 4.3 does. `[steps.differs."PROFILE, PROFILE"]` has what
other profiles do otherwise; only what differs is written. `error_code` names the field of that name
if there is one alone, else write as much of its path as is needed: `partitions[0].error_code`. A
field that no step names is compared, too: it must be what the other broker says
(`ottla.compare.judging`).

**References.** `$first.base_offset` stands for a field of the answer to the step with
`name = "first"`, in later requests and expectations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ottla.compare.matching import Matcher

SCHEMA = 1
TOPIC = "t"
"""The topic of a case that names none."""
MAIN = "main"
"""The connection of a step that names none."""


class Outcome(Enum):
    """What became of a request."""

    ANSWERED = "answered"
    UNANSWERED = "no answer"
    """None came, and the connection serves on."""
    CLOSED = "closed"
    """The broker closed the connection instead."""
    SILENT = "silence"
    """None came, the connection is open and serves nobody."""
    DISORDERED = "out of order"
    """An answer came before that to an earlier request."""


OUTCOMES = tuple(each.value for each in Outcome if each is not Outcome.DISORDERED)


@dataclass(frozen=True)
class Request:
    """A request of an API; `version` None takes the usual one that the target serves."""

    api: str
    """kio's name, `list_offsets`; for a number that no API has, that number as text."""
    key: int
    version: int | None
    fields: Mapping[str, Any]
    body: bytes | None = None
    """Instead of fields: the bytes of the body."""
    answered_in: int | None = None
    """The version of the answer, if it is another than that of the request."""
    unserved: bool = False
    """Whether the broker need not serve this version: that is what the case is about."""
    client_id: str | None = "ottla"
    cut: int = 0
    """Bytes that are left away at the end of the frame."""
    tail: bytes = b""
    """Bytes after the body, in the frame."""


@dataclass(frozen=True)
class Raw:
    """Bytes that are written as they are."""

    data: bytes


@dataclass(frozen=True)
class Wait:
    """Nothing is sent for so long."""

    ms: int


@dataclass(frozen=True)
class Expectation:
    """What must become of a request, and of fields of its answer."""

    outcome: Outcome
    fields: Mapping[str, Matcher] = field(default_factory=dict)
    took: Matcher | None = None
    """Of the ms until the answer."""


@dataclass(frozen=True)
class Step:
    """One request, or a wait."""

    number: int
    """From 1."""
    name: str | None
    ask: Request | Raw | Wait
    connection: str
    pipelined: bool
    expect: Expectation
    differs: Mapping[str, Expectation]
    """By profile: what it does instead."""
    refers: tuple[str, ...] = ()
    """The references in its request to earlier answers."""

    def expected_of(self, profile: str) -> Expectation:
        """What a profile does."""
        return self.differs.get(profile, self.expect)


@dataclass(frozen=True)
class Topic:
    """A topic that is made before the first step."""

    name: str
    partitions: int
    configs: Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """See the module's docstring."""

    name: str
    """The folder and the file's name without `.toml`: `idempotence/a-gap-is-refused`."""
    title: str
    sources: tuple[str, ...]
    """Keys of docs/sources.md."""
    needs: Mapping[str, int | None]
    """By API: a version that the target must serve, or the case is left out. None: any version."""
    topics: tuple[Topic, ...]
    absent: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names that stand for topics of this run alone."""
        return (*(each.name for each in self.topics), *self.absent)
