"""What a leader knows of one follower, and how fast it may send to it.

A follower is in one of three states. The state changes only by a row of `PROGRESS`. Names and idea
are those of etcd's raft; here all moves are in one table instead of in the message handlers.

* **PROBE**: the leader does not know where the logs agree. It sends one AppendEntries at a time.
* **REPLICATE**: the logs agree up to `match`. The leader sends entries without waiting for answers;
  `next` is ahead of `match`, and the bytes in flight are bounded.
* **SNAPSHOT**: the follower needs entries that are compacted. Chunks are sent one at a time.

Silence is counted in scans of the retransmission timer, not in time. One scan marks an unanswered
message, a later scan sends it again. So a scan that comes too early does no harm; it can come early
because the timer is armed by the time of the core's last input (see `leadership.advance`).

After silence in REPLICATE `next` stays as it is: the probe is an empty range that asks whether
*all* entries sent have arrived. If they have, nothing is sent twice. If not, the refusal says where
to go on.
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
    """PROBE: it confirmed the entry before `next` or a later one. SNAPSHOT: it confirmed everything
    that is compacted."""
    REFUSED = "refused"
    """Its log differs from the leader's at the index asked for."""
    SILENT = "silent"
    """It left a message unanswered for at least the retransmission span."""
    COMPACTED = "compacted"
    """The entry that it needs next is compacted."""


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
    """The follower holds the leader's entries up to here durably."""
    next: LogIndex
    """The first entry that is not sent yet."""
    state: ProgressState
    last_contact: Micros
    """When the follower was last heard of (at first: when this leader was elected)."""


@dataclass(slots=True)
class Sending:
    """A snapshot that is being sent to a follower. `offset`: how many bytes the follower has."""

    meta: SnapshotMeta
    offset: int = 0


@dataclass(slots=True)
class Progress:
    """A leader's record of one follower. `match < next` in PROBE and REPLICATE."""

    node: NodeId
    next: LogIndex
    contact: Micros
    """When the follower was last heard of."""
    match: LogIndex = 0
    """The follower holds the leader's entries up to here. It falls only if the follower refuses a
    probe at or below this index: then it has lost entries, and the leader sends them again."""
    state: ProgressState = ProgressState.PROBE
    asked: bool = False
    """In PROBE and SNAPSHOT: one message is sent and not answered; no other may be sent."""
    bare: bool = False
    """In PROBE: ask with an empty range, because a silent follower may be dead."""
    quiet: int = 0
    """How many scans have found something unanswered since the last answer."""
    context: int = 0
    """The highest barrier ticket that the follower has answered."""
    sending: Sending | None = None
    """In SNAPSHOT: the snapshot that is being sent."""

    def move(self, event: ProgressEvent) -> None:
        """Go to the state that the table gives; asserts that there is a row."""
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
        """The follower is alive, as a heartbeat says. After silence the leader may ask it at
        once."""
        self.contact = max(self.contact, at)
        if self.quiet >= 2:
            self.asked = False
            self.quiet = 0

    def may_send(self, last: LogIndex) -> bool:
        """Whether the leader may send to it now, if its log ends at `last`."""
        if self.state is ProgressState.REPLICATE:
            return self.next <= last
        return not self.asked

    @property
    def unanswered(self) -> bool:
        """Whether something sent to it still waits for an answer."""
        return self.state is not ProgressState.REPLICATE or self.next - 1 > self.match

    def is_overdue(self) -> bool:
        """Count one more scan without an answer. Returns whether to send again now: at the second
        scan, then at every fourth, so that a dead follower costs little."""
        self.quiet += 1
        return self.quiet == 2 or self.quiet % 4 == 0

    def view(self) -> ProgressView:
        """A read-only copy."""
        return ProgressView(self.match, self.next, self.state, self.contact)
