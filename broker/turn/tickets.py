"""Tickets: the commands that a replica's inbox may have besides Raft's messages.

A *ticket* is a small mutable object. It goes into the inbox of a replica; the state machine fills
in `error` and the fields of the answer; it comes back in `Effects.answers`, and the driver calls
`on_done(ticket)` exactly once. Tickets are plain classes without a future or a task, because one is
made for every produce request.

Times are Micros of the driver's monotonic clock. Offsets count records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import Command, Origin
from ottla.idempotency.producer import InFlight, Owner
from ottla.log.inspection import NO_CLOCK, Fault
from ottla.log.types import (
    NO_OFFSET,
    NO_TIMESTAMP,
    EpochStart,
    Millis,
    Offset,
    RecordBatch,
    Term,
    Unpacked,
)
from ottla.raft.types import LogIndex, Matched, Micros, NodeId

log = logging.getLogger("ottla")

NEVER: Micros = 2**63 - 1
"""The deadline of a ticket that waits for ever."""
LEAST_PATIENCE: Micros = 1000
"""The smallest time limit. A limit of 0 ms or less counts as one millisecond, as in Kafka, whose
timers tick in milliseconds; a single replica succeeds within it (K-ACKS)."""
ANY_EPOCH: Term = -1
"""The client did not name a leader epoch."""
CONSUMER = -1
"""The replica id of a client that is not a replica: it sees only committed records."""
DEBUGGER = -2
"""The replica id of a client that reads this replica's own log, even if this node does not lead
(Kafka's DEBUGGING_REPLICA_ID)."""


class Ticket:
    """What all tickets share: a deadline, an outcome, and the function to call with it.

    `__init__` sets only what it is given; all other fields begin as class attributes, so that
    making a ticket is cheap.
    """

    done = False
    """Whether the ticket has its outcome; later outcomes do not count."""
    error = ErrorCode.NONE

    def __init__(self, on_done: Callable[[Matched], None], deadline: Micros, owner: Owner = None):
        self.on_done = on_done
        self.deadline = deadline
        """After this time the state machine answers with its own kind of timeout."""
        self.owner = owner
        """An object of the caller, for `on_done`; nobody else reads it."""


class ProduceTicket(Ticket):
    """Append one record batch to one partition: hops 2 to 7 of a produce request
    (docs/explanation/architecture.md)."""

    on_enqueued: Callable[[ProduceTicket], None] | None = None
    """Called at the first stage of `replicate_in_stages`: the place in the log is certain
    (promise-R1)."""
    # The fields of the answer.
    base_offset: Offset = NO_OFFSET
    log_append_time: Millis = NO_TIMESTAMP
    log_start_offset: Offset = NO_OFFSET
    leader: NodeId = 0
    """With NOT_LEADER_OR_FOLLOWER: the node that leads, 0 if it is not known."""
    leader_epoch: Term = -1
    faults: Sequence[Fault] = ()
    """With INVALID_TIMESTAMP: the faulty records, and what is wrong with each."""
    # Fields for the partition while it handles the ticket.
    term: Term = 0
    index: LogIndex = 0
    in_flight: InFlight | None = None
    barrier_passed = False
    patience: Micros = 0
    """The rest of the client's time limit while the ticket has no deadline (`Inspector.wait`)."""

    def __init__(
        self,
        batch: RecordBatch,
        acks: int,
        on_done: Callable[[ProduceTicket], None],
        deadline: Micros,
        owner: Owner = None,
        *,
        wall_ms: Millis = NO_CLOCK,
    ):
        # The lines of Ticket.__init__: this saves a call for every request.
        self.on_done = on_done
        self.deadline = deadline
        self.owner = owner
        self.batch = batch
        self.acks = acks
        self.wall_ms = wall_ms
        """The wall clock at the arrival of the batch, by which the times of its records are
        checked.
        """


def not_stored(tickets: Sequence[Ticket]) -> Sequence[Ticket]:
    """The store failed, or a turn raised: answer all produce tickets with KAFKA_STORAGE_ERROR,
    because their batches may not be stored."""
    for ticket in tickets:
        if isinstance(ticket, ProduceTicket):
            ticket.error = ErrorCode.KAFKA_STORAGE_ERROR
    return tickets


def answer(tickets: Iterable[Ticket], node: NodeId) -> None:
    """Call `on_done` of all tickets. An exception in it is logged: it is not the replica's
    fault."""
    for ticket in tickets:
        try:
            ticket.on_done(ticket)
        except Exception:
            log.exception("node %d: an answer could not be delivered", node)


class LookOnTicket(Ticket):
    """Of the driver: there is another slice for checking batches (`looks.py`). Never answered.

    Its own deadline is 0, so that the replica computes its deadlines again: a batch whose check
    ends now gets a deadline, which may be the earliest one.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(lambda _: None, 0)


class FetchTicket(Ticket):
    """Asks which entries a reader at `offset` may see now. The driver reads the bytes.

    `last_fetched_epoch` is the leader epoch of the record before `offset` in the reader's own log.
    If it is given, the answer also says where the two logs begin to differ, if they do (KIP-595).
    """

    __slots__ = (
        "current_leader_epoch",
        "diverging",
        "first_index",
        "high_watermark",
        "last_fetched_epoch",
        "last_index",
        "leader",
        "leader_epoch",
        "log_start_offset",
        "max_bytes",
        "offset",
        "proof_deadline",
        "proved",
    )

    def __init__(
        self,
        offset: Offset,
        max_bytes: int,
        current_leader_epoch: Term,
        on_done: Callable[[FetchTicket], None],
        deadline: Micros,
        *,
        proof_deadline: Micros = 0,
        owner: Owner = None,
        last_fetched_epoch: Term = ANY_EPOCH,
    ):
        super().__init__(on_done, deadline, owner)
        self.offset = offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.proof_deadline = proof_deadline
        """The least `deadline` while a barrier has to prove the leadership. It does not depend on
        how long the client waits for records."""
        self.proved = False
        """Whether a barrier has proved that this node leads. That is asked for if `offset` is above
        this log, or if the reader's log differs from this one."""
        # The answer: entries first_index..last_index hold committed records from `offset` on;
        # first_index is 0 if there are none yet.
        self.diverging: EpochStart | None = None
        """The largest epoch <= `last_fetched_epoch` in this log, and its end: from there on the
        reader's log differs. None: the logs agree."""
        self.first_index: LogIndex = 0
        self.last_index: LogIndex = 0
        self.high_watermark: Offset = NO_OFFSET
        self.log_start_offset: Offset = NO_OFFSET
        self.leader: NodeId = 0
        self.leader_epoch: Term = -1


class WatchTicket(Ticket):
    """Answered when the high watermark passes `beyond`, the leadership is lost, or the deadline has
    passed."""

    __slots__ = ("beyond", "cancelled")

    def __init__(
        self,
        beyond: Offset,
        on_done: Callable[[WatchTicket], None],
        deadline: Micros,
        owner: Owner = None,
    ):
        super().__init__(on_done, deadline, owner)
        self.beyond = beyond
        self.cancelled = False
        """Set by the caller that no longer needs the answer: the ticket is dropped unanswered."""


class ListOffsetsTicket(Ticket):
    """Offset by timestamp (ListOffsets): -1 latest, -2 earliest, -3 max timestamp, else a time.

    For a time (or -3) the answer is `index`, the log index of the batch to search, 0 if there is
    none. The handler searches it from `log_start_offset` on. If no record of the batch has the time
    that its header promises, the handler asks again with `behind` set to that index. `asker` is the
    replica id of the client: latest is the high watermark for a `CONSUMER`, else the log end
    offset.
    """

    __slots__ = (
        "asker",
        "behind",
        "current_leader_epoch",
        "index",
        "leader_epoch",
        "log_start_offset",
        "offset",
        "timestamp",
    )

    def __init__(
        self,
        timestamp: Millis,
        current_leader_epoch: Term,
        on_done: Callable[[ListOffsetsTicket], None],
        deadline: Micros,
        owner: Owner = None,
    ):
        super().__init__(on_done, deadline, owner)
        self.timestamp = timestamp
        self.current_leader_epoch = current_leader_epoch
        self.asker = CONSUMER
        self.behind: LogIndex = 0
        # The answer.
        self.offset: Offset = NO_OFFSET
        self.log_start_offset: Offset = NO_OFFSET
        self.index: LogIndex = 0
        self.leader_epoch: Term = -1


class EpochEndTicket(Ticket):
    """Asks where leader epoch `epoch` ended (OffsetForLeaderEpoch, KIP-320)."""

    __slots__ = ("current_leader_epoch", "end", "epoch")

    def __init__(
        self,
        epoch: Term,
        current_leader_epoch: Term,
        on_done: Callable[[EpochEndTicket], None],
        deadline: Micros,
        owner: Owner = None,
    ):
        super().__init__(on_done, deadline, owner)
        self.epoch = epoch
        self.current_leader_epoch = current_leader_epoch
        self.end: EpochStart | None = None
        """The largest epoch <= `epoch` that has a record, and the offset after its last record."""


class DeleteRecordsTicket(Ticket):
    """Move the log start offset to `offset` (-1: the high watermark), by a command in the log."""

    __slots__ = ("log_start_offset", "offset", "proved")

    def __init__(
        self,
        offset: Offset,
        on_done: Callable[[DeleteRecordsTicket], None],
        deadline: Micros,
        owner: Owner = None,
    ):
        super().__init__(on_done, deadline, owner)
        self.offset = offset
        self.proved = False
        """As in `FetchTicket`; asked for if `offset` is above the high watermark."""
        self.log_start_offset: Offset = NO_OFFSET


class ControlTicket(Ticket):
    """A controller command (`ottla.broker.controller.controller`): answered when it is applied."""

    __slots__ = ("command", "index", "origin", "result")

    def __init__(
        self,
        command: Command,
        on_done: Callable[[ControlTicket], None],
        deadline: Micros,
        owner: Owner = None,
        *,
        origin: Origin | None = None,
    ):
        super().__init__(on_done, deadline, owner)
        self.command = command
        self.origin = origin
        """Identifies a command that may be sent again; None: it is never sent again."""
        self.result: dict[str, Unpacked] = {}
        self.index: LogIndex = 0
        """The command's index in the controller's log, 0 if it is not in it. In the answer to a
        `Position`: the last applied index."""
