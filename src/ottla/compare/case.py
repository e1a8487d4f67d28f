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
before the next begins; one with `pipelined = true` leaves in the same write as the step before, and
behind one with `in_flight = true` the next step begins at once: its answer is awaited in the end.

**Expectations.** `expect` is what Kafka 4.3 does. `[steps.differs."PROFILE, PROFILE"]` has what
other profiles do otherwise; only what differs is written. `error_code` names the field of that name
if there is one alone, else write as much of its path as is needed: `partitions[0].error_code`. A
field that no step names is compared, too: it must be what the other broker says
(`ottla.compare.judging`).

**References.** `$first.base_offset` stands for a field of the answer to the step with
`name = "first"`, in later requests and expectations.

**Several nodes** need `schema = 2`, and so does whatever happens to a node. `nodes = 3` asks for a
cluster of three, numbered from 1. A topic has a replica on each node, or on those that its
`replicas` lists; the first one leads. A step goes to node 1 unless `node` names another, which may
be `"leader"`: the node that led when a step has last waited for a leader, at first the first
replica. These steps send nothing (`ACTS`); they are about the first partition of the first topic:

    kill = 1                # signal 9; it keeps its disk, less what was not synced
    restart = 1             # it starts on its disk; one that runs is stopped in order before
    pause = 3               # SIGSTOP, until resume = 3
    isolate = 3             # no message to or from other nodes, until heal = 3; clients reach it
    lead = 2                # the leadership is transferred to it; goes on when it serves
    elected = [2, 3]        # goes on when one of these leads and serves
    in_sync = [1, 2]        # goes on when the leader says that just these replicas are in sync

A case that has a fault has a cluster of its own. Where a profile serves it, a replica is out of
sync after half a second; `settings = { producer_expiry_ms = 1000 }` sets what else a case needs
(`SETTINGS`).

**Left out.** `left_out = { "PROFILE, PROFILE" = "no public source says what it answers" }` names
profiles that the case says nothing of, each with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ottla.compare.matching import Matcher

SCHEMA = 1
NODES_SCHEMA = 2
"""The schema of a case with several nodes, or with a step that does something to a node."""
TOPIC = "t"
"""The topic of a case that names none."""
MAIN = "main"
"""The connection of a step that names none."""
LEADER = "leader"
"""As the node of a step: the one that was last seen to lead."""
MOST_NODES = 7
FAULTS = ("kill", "restart", "pause", "resume", "isolate", "heal", "lead")
"""What a step may do to a node."""
AWAITED = ("elected", "in_sync")
"""What a step may wait for, of nodes."""
ACTS = (*FAULTS, *AWAITED)
SETTINGS = ("max_producers", "producer_expiry_ms")
"""Settings of the cluster that a case may need: what no request can ask for."""


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
class Act:
    """Nothing is sent, but something is done to a node, or awaited of some."""

    word: str
    """One of `ACTS`."""
    nodes: tuple[int, ...]
    """One, if it is a fault."""

    def told(self) -> str:
        """The act in a few words."""
        between = " or " if self.word == "elected" else " and "
        return f"{self.word} {between.join(map(str, self.nodes))}"


@dataclass(frozen=True)
class Expectation:
    """What must become of a request, and of fields of its answer."""

    outcome: Outcome
    fields: Mapping[str, Matcher] = field(default_factory=dict)
    took: Matcher | None = None
    """Of the ms until the answer."""


@dataclass(frozen=True)
class Step:
    """One request, a wait, or an act."""

    number: int
    """From 1."""
    name: str | None
    ask: Request | Raw | Wait | Act
    connection: str
    pipelined: bool
    expect: Expectation
    differs: Mapping[str, Expectation]
    """By profile: what it does instead."""
    refers: tuple[str, ...] = ()
    """The references in its request to earlier answers."""
    node: int | str = 1
    """Where it goes: the number of a node, or `LEADER`."""
    in_flight: bool = False
    """Whether the next step begins before its answer has come."""

    @property
    def asks(self) -> bool:
        """Whether something is sent, so that there is a reply."""
        return isinstance(self.ask, Request | Raw)

    def expected_of(self, profile: str) -> Expectation:
        """What a profile does."""
        return self.differs.get(profile, self.expect)


@dataclass(frozen=True)
class Topic:
    """A topic that is made before the first step."""

    name: str
    partitions: int
    configs: Mapping[str, str]
    replicas: tuple[int, ...] = (1,)
    """The nodes that have a replica of each partition; the first one leads."""


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
    nodes: int = 1
    left_out: Mapping[str, str] = field(default_factory=dict)
    """By profile: why the case says nothing of it."""
    settings: Mapping[str, int] = field(default_factory=dict)
    """Of its cluster, which somebody must be able to set."""

    @property
    def faults(self) -> tuple[str, ...]:
        """What it does to nodes, each word once, in the order of `FAULTS`."""
        done = {each.ask.word for each in self.steps if isinstance(each.ask, Act)}
        return tuple(each for each in FAULTS if each in done)

    @property
    def own_cluster(self) -> bool:
        """Whether a profile plays it to a cluster that it shares with no other case."""
        return self.nodes > 1 or bool(self.faults) or bool(self.settings)

    @property
    def names(self) -> tuple[str, ...]:
        """Names that stand for topics of this run alone."""
        return (*(each.name for each in self.topics), *self.absent)
