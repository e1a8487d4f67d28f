"""A trace: what a run shows of its nodes from outside, one plain value per event.

The events of a run are in one order, the order in which they happened. A node is seen where it
meets the world: messages, its disk, its clients. What it does inside stays hidden.

| kind | body | what happened |
|---|---|---|
| start | Found, one per group | a life of the node begins on what its disk holds |
| receive | Message | the node takes in a message; it may act on it later |
| send | Message | a message leaves the node |
| write | Write, several of one group | the disk takes them; reads see them from now on |
| durable | number | all writes with at most this number survive from now on |
| commit | index | the node knows that its log is committed up to there, and applies it |
| ask | Ask | a client's request reaches the node's replica |
| answer | Answer | the replica answers it |

An index counts the entries of a log from 1; an offset counts records from 0, and names the next
record. Times are microseconds of the node's own monotonic clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

NOBODY = 0
"""No vote; nodes are numbered from 1."""
ALL_GROUPS = -1
"""The group of an event that concerns all groups of its node."""


class Entry(NamedTuple):
    """One entry of a log."""

    term: int
    mark: int
    """Stands for the content: equal contents have equal marks."""
    records: int = 0


class Message(NamedTuple):
    """A message of Raft between two members of a group. Fields that a kind does not use keep their
    defaults.

    | kind | fields |
    |---|---|
    | vote? | `log_index`, `log_term`: the end of the candidate's log; `pre`, `transfer` |
    | vote | `yes`, `pre` |
    | append? | `log_index`, `log_term`: the entry before; `entries`; `commit` |
    | append | `yes`; then `log_index`: up to there the logs agree |
    | heartbeat? | `commit`; `context` numbers the barrier that it is sent for, 0: none |
    | heartbeat | `context` of the question |
    | snapshot? | `log_index`, `log_term`: its last entry; `span`: first byte, byte behind, size |
    | snapshot | `log_index`; `yes`: it is installed; `span`: how many bytes are there |
    | timeout-now | |
    | alive | it lives; `yes`: at `context`, by the receiver's clock, it followed, but in `span` |
    """

    kind: str
    sender: int
    to: int
    term: int
    log_index: int = 0
    log_term: int = 0
    commit: int = 0
    context: int = 0
    yes: bool = False
    pre: bool = False
    transfer: bool = False
    entries: tuple[Entry, ...] = ()
    span: tuple[int, ...] = ()

    @property
    def last(self) -> int:
        """The index of the last entry that it has or names."""
        return self.log_index + len(self.entries)


class Write(NamedTuple):
    """What the disk takes. The parts take effect in the order of these fields."""

    number: int
    """Counts the writes of a node's disk; those of one turn have the same number."""
    state: tuple[int, int] | None = None
    """Term and vote."""
    snapshot: tuple[int, int] | None = None
    """Index and term of the last entry in a snapshot."""
    reset: bool = False
    """The snapshot replaces the log."""
    first: int = 0
    """With entries: they replace the log from this index on."""
    entries: tuple[Entry, ...] = ()
    voters: tuple[int, ...] = ()
    """The members of the group, if its first entry is written, or a snapshot."""
    delete: bool = False
    """The group is gone."""
    hands_over_to: int = NOBODY
    """Whom the node means to make leader in its place (leadership transfer, thesis 3.10)."""


class Found(NamedTuple):
    """What a disk holds of a group when a life begins: `entries` from index `first` on."""

    group: int
    term: int
    vote: int
    first: int
    entries: tuple[Entry, ...]


class Ask(NamedTuple):
    """A request. `ref` names it in its answer."""

    ref: int
    offset: int = 0
    """Of a fetch: from where on it reads."""
    acks: int = 0
    """Of a produce request."""
    minimum: int = 1
    """min.insync.replicas of the topic."""


class Answer(NamedTuple):
    """The answer to a request."""

    ref: int
    what: str
    """produce, fetch, or latest: a reader's question where the log ends."""
    error: str
    placed: bool = False
    """Of a produce request: this request got a place in the log, no copy of it did."""
    offset: int = 0
    """Of a produce request: where its first record is. Of the others: the high watermark."""
    last: int = 0
    """Of a fetch: the index of the last entry that is given, 0 if there is none."""


Body: TypeAlias = Message | Sequence[Write] | Sequence[Found] | Ask | Answer | int


class Event(NamedTuple):
    """One event. `group` is `ALL_GROUPS` where the body names its groups or concerns all."""

    kind: str
    node: int
    group: int
    at: int
    body: Any
    slow: bool = False
    """The node is so busy, or was just frozen, that it may act much later."""

    def __str__(self) -> str:
        body = self.body
        told = body if isinstance(body, int) else _told(body)
        return f"{self.kind} node={self.node} group={self.group} {told}"


def _told(body: Any) -> str:
    """The fields that say something."""
    if not hasattr(body, "_asdict"):
        return " + ".join(_told(each) for each in body)
    said = {name: value for name, value in body._asdict().items() if value}
    kind = said.pop("kind", "")
    return " ".join([kind, *(f"{name}={_short(value)}" for name, value in said.items())]).strip()


def _short(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], Entry):
        terms = sorted({each.term for each in value})
        return f"{len(value)} of term {', '.join(map(str, terms))}"
    return str(value).replace(" ", "")
