"""What a leader knows of one follower, and how fast it may send to it.

Three states, moved only by rows of `PROGRESS` (the names and the idea are those of etcd's raft;
the moves are gathered here instead of being spread over the message handlers):

* **PROBE**: where the logs agree is not known. One AppendEntries at a time.
* **REPLICATE**: they agree up to `match`; entries stream, `next` runs ahead of the answers, the
  bytes in flight are bounded.
* **SNAPSHOT**: the follower needs entries that are compacted; chunks of the snapshot go one by one.

Silence is counted in scans of the retransmission timer, not in time: a scan that finds something
unanswered marks it, a later one sends again. So a scan that comes early, because the core was last
told the time long ago, does no harm (see `leadership.advance`).

After silence in REPLICATE `next` stays: the probe asks with an empty range whether *all* that was
sent has arrived. If so, nothing is sent twice; if not, the refusal says where to go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ottla.raft.types import LogIndex, Micros, NodeId, SnapshotMeta


class ProgressState(Enum):
    """How a leader sends to one follower."""

    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


class ProgressEvent(Enum):
    """What can happen to a follower's progress."""

    MATCHED = "matched"
    """It confirmed the place `next` stands at, or one beyond; or all that is compacted."""
    REFUSED = "refused"
    """Its log does not agree at the place asked for."""
    SILENT = "silent"
    """It left something unanswered for a whole retransmission span."""
    COMPACTED = "compacted"
    """The entry it needs next, or the one before, is compacted."""


@dataclass(frozen=True, slots=True)
class ProgressMove:
    """One row: in `source`, `event` leads to `target`."""

    source: ProgressState
    event: ProgressEvent
    target: ProgressState
    reason: str


PROGRESS: tuple[ProgressMove, ...] = (
    ProgressMove(
        ProgressState.PROBE,
        ProgressEvent.MATCHED,
        ProgressState.REPLICATE,
        "the logs agree there: stream",
    ),
    ProgressMove(
        ProgressState.PROBE,
        ProgressEvent.REFUSED,
        ProgressState.PROBE,
        "ask again further back, at the hint",
    ),
    ProgressMove(
        ProgressState.PROBE,
        ProgressEvent.SILENT,
        ProgressState.PROBE,
        "ask again, without entries",
    ),
    ProgressMove(
        ProgressState.PROBE,
        ProgressEvent.COMPACTED,
        ProgressState.SNAPSHOT,
        "what it needs is only in the snapshot",
    ),
    ProgressMove(
        ProgressState.REPLICATE,
        ProgressEvent.MATCHED,
        ProgressState.REPLICATE,
        "the window moves on",
    ),
    ProgressMove(
        ProgressState.REPLICATE,
        ProgressEvent.REFUSED,
        ProgressState.PROBE,
        "a message was lost or overtaken: find the place again",
    ),
    ProgressMove(
        ProgressState.REPLICATE,
        ProgressEvent.SILENT,
        ProgressState.PROBE,
        "ask whether all that was sent has arrived, before more is sent",
    ),
    ProgressMove(
        ProgressState.REPLICATE,
        ProgressEvent.COMPACTED,
        ProgressState.SNAPSHOT,
        "the log was compacted beyond what was sent",
    ),
    ProgressMove(
        ProgressState.SNAPSHOT,
        ProgressEvent.MATCHED,
        ProgressState.REPLICATE,
        "it holds the snapshot, or a late answer shows that it needs none",
    ),
    ProgressMove(
        ProgressState.SNAPSHOT,
        ProgressEvent.SILENT,
        ProgressState.SNAPSHOT,
        "send the chunk again",
    ),
    ProgressMove(
        ProgressState.SNAPSHOT,
        ProgressEvent.COMPACTED,
        ProgressState.SNAPSHOT,
        "a newer snapshot took the place of the one being sent: begin again",
    ),
)

_MOVES = {(row.source, row.event): row.target for row in PROGRESS}
assert len(_MOVES) == len(PROGRESS), f"{len(PROGRESS)} rows, {len(_MOVES)} distinct"


class ProgressView(NamedTuple):
    """A follower as its leader sees it, for in-sync replicas and descriptions."""

    match: LogIndex
    """It holds everything up to here durably, equal to the leader's log."""
    next: LogIndex
    """First entry not sent yet."""
    state: ProgressState
    last_contact: Micros
    """When it was last heard of (at first: when this leader was elected)."""


@dataclass(slots=True)
class Sending:
    """A snapshot on its way to a follower: which one, and how much has arrived there."""

    meta: SnapshotMeta
    offset: int = 0


@dataclass(slots=True)
class Progress:
    """A leader's record of one follower. `match < next` in PROBE and REPLICATE."""

    node: NodeId
    next: LogIndex
    contact: Micros
    """When it was last heard of."""
    match: LogIndex = 0
    """Rises with answers. It falls only when the very place it names is refused to a probe: then
    the follower lost what it had promised, and must be sent it again."""
    state: ProgressState = ProgressState.PROBE
    asked: bool = False
    """In PROBE and SNAPSHOT: the one message allowed is on its way."""
    bare: bool = False
    """In PROBE: ask with an empty range; after silence, bytes may be wasted on nobody."""
    quiet: int = 0
    """Scans of the retransmission timer since the last answer that found something unanswered."""
    context: int = 0
    """Highest barrier it answered for."""
    sending: Sending | None = None
    """In SNAPSHOT: what is being sent."""

    def move(self, event: ProgressEvent) -> None:
        """Go to the state the table names; asserts that it names one."""
        target = _MOVES.get((self.state, event))
        assert target is not None, f"follower {self.node}: {event} cannot occur in {self.state}"
        self.state = target
        self.asked = False
        self.bare = event is ProgressEvent.SILENT
        if target is not ProgressState.SNAPSHOT:
            self.sending = None

    def answered(self, at: Micros) -> None:
        """An answer to entries or chunks arrived."""
        self.contact = max(self.contact, at)
        if self.quiet:
            self.alive(at)
            self.quiet = 0

    def alive(self, at: Micros) -> None:
        """It lives, as a heartbeat says. That answers nothing; but after silence, ask at once."""
        self.contact = max(self.contact, at)
        if self.quiet >= 2:
            self.asked = False
            self.quiet = 0

    def may_send(self, last: LogIndex) -> bool:
        """Whether there is something to send to it, with the log ending at `last`."""
        if self.state is ProgressState.REPLICATE:
            return self.next <= last
        return not self.asked

    @property
    def unanswered(self) -> bool:
        """Whether something sent to it still waits for an answer."""
        return self.state is not ProgressState.REPLICATE or self.next - 1 > self.match

    def is_overdue(self) -> bool:
        """Count one more scan without an answer; whether it is time to send again.

        Again at the second scan, then at every fourth: a dead follower costs little.
        """
        self.quiet += 1
        return self.quiet == 2 or self.quiet % 4 == 0

    def view(self) -> ProgressView:
        """What others may see of it."""
        return ProgressView(self.match, self.next, self.state, self.contact)
