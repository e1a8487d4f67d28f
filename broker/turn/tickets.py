"""Commands to a replica: what may lie in an inbox beside Raft's own messages.

A command is a *ticket*: a small mutable object that goes into the inbox of a replica, is filled in
by the state machine (`error` and the answer's fields), and comes back in `Effects.answers`, where
the driver calls `on_done(ticket)`, exactly once. Tickets are plain slotted classes because one is
made for every produce request; there is no future and no task behind them.

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
"""The deadline of what waits for ever."""
LEAST_PATIENCE: Micros = 1000
"""Kafka's timers tick in milliseconds: a client that waits 0 ms or less hears of a timeout within
one, and of plain success from a single replica (K-ACKS)."""
ANY_EPOCH: Term = -1
"""The client did not say which leader epoch it believes in."""
CONSUMER = -1
"""Replica id of a client that is no replica: it sees what is committed."""
DEBUGGER = -2
"""Replica id of a client that wants to see this replica's own log, whoever leads (Kafka's
DEBUGGING_REPLICA_ID)."""


class Ticket:
    """What all commands share: a limit in time, an outcome, and who wants to know.

    What a ticket is made with stands in its `__init__`; the rest begins as its class says, so that
    making one costs no more than what it is made with.
    """

    done = False
    """Has its outcome; further outcomes do not count."""
    error = ErrorCode.NONE

    def __init__(self, on_done: Callable[[Matched], None], deadline: Micros, owner: Owner = None):
        self.on_done = on_done
        self.deadline = deadline
        """Point in time after which the state machine answers with a timeout of its own kind."""
        self.owner = owner
        """Whatever the submitter wants to find again in `on_done`; never read in between."""


class ProduceTicket(Ticket):
    """Append one record batch to one partition: hops 2 to 7 of a produce request
    (docs/explanation/architecture.md)."""

    on_enqueued: Callable[[ProduceTicket], None] | None = None
    """Stage one of `replicate_in_stages`: the place in the log is certain (promise-R1)."""
    # The answer.
    base_offset: Offset = NO_OFFSET
    log_append_time: Millis = NO_TIMESTAMP
    log_start_offset: Offset = NO_OFFSET
    leader: NodeId = 0
    """With NOT_LEADER_OR_FOLLOWER: who leads instead, 0 when unknown."""
    leader_epoch: Term = -1
    faults: Sequence[Fault] = ()
    """With INVALID_TIMESTAMP: what is wrong with which record."""
    # The partition's own notes while the ticket is under way.
    term: Term = 0
    index: LogIndex = 0
    in_flight: InFlight | None = None
    barrier_passed = False
    patience: Micros = 0
    """What is left of the client's time limit while `deadline` stands still."""

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
        # Ticket.__init__, written out: one call less for every request.
        self.on_done = on_done
        self.deadline = deadline
        self.owner = owner
        self.batch = batch
        self.acks = acks
        self.wall_ms = wall_ms
        """The wall clock when the batch came, for the limits of its records' times."""


def not_stored(tickets: Sequence[Ticket]) -> Sequence[Ticket]:
    """The store failed, or a turn broke: no batch among these may be called stored."""
    for ticket in tickets:
        if isinstance(ticket, ProduceTicket):
            ticket.error = ErrorCode.KAFKA_STORAGE_ERROR
    return tickets


def answer(tickets: Iterable[Ticket], node: NodeId) -> None:
    """Tell whoever submitted them; what goes wrong there is not the fault of the replica."""
    for ticket in tickets:
        try:
            ticket.on_done(ticket)
        except Exception:
            log.exception("node %d: an answer could not be delivered", node)


class LookOnTicket(Ticket):
    """The driver's: there is another slice to look into batches (`looking.py`). Never answered.
    Whoever is judged then has a deadline from then on, which may be the earliest: so its own is 0,
    and the replica asks anew."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(lambda _: None, 0)


class FetchTicket(Ticket):
    """Which entries may a reader at `offset` see now? The bytes are read by the driver.

    With `last_fetched_epoch`, the leader epoch of the record before `offset` in the reader's own
    log, it is also told where the two logs part, if they do (KIP-595).
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
        """Takes the place of an earlier `deadline` while leadership has to be proved: how long that
        takes has nothing to do with how long the client waits for records."""
        self.proved = False
        """This node led when it was asked for after `offset` seemed to lie above the log, or in
        another one."""
        # The answer: entries first_index..last_index hold committed records from `offset` on;
        # first_index == 0 when there are none yet.
        self.diverging: EpochStart | None = None
        """The largest epoch <= `last_fetched_epoch` in this log, and its end: behind that the
        reader's log is another one."""
        self.first_index: LogIndex = 0
        self.last_index: LogIndex = 0
        self.high_watermark: Offset = NO_OFFSET
        self.log_start_offset: Offset = NO_OFFSET
        self.leader: NodeId = 0
        self.leader_epoch: Term = -1


class WatchTicket(Ticket):
    """Tell me when the high watermark passes `beyond`, leadership is lost, or time is up."""

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
        """Set by the submitter who no longer cares; the ticket is then dropped unanswered."""


class ListOffsetsTicket(Ticket):
    """Offset by timestamp (ListOffsets): -1 latest, -2 earliest, -3 max timestamp, else a time.

    For a time (or -3) the answer names the candidate batch, `index`; the driver looks inside it,
    no deeper than `log_start_offset`. When a header promised a time that no record has, the driver
    asks again with `behind` set to that index. `asker` is the replica id of the client: for all but
    a `CONSUMER` latest is the log end.
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
    """Where did leader epoch `epoch` end (OffsetForLeaderEpoch, KIP-320)?"""

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
        """The largest epoch <= `epoch` that wrote something, and the offset behind its last."""


class DeleteRecordsTicket(Ticket):
    """Move the log start to `offset` (-1: the high watermark), by a decision in the log."""

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
        """As of a `FetchTicket`, above the high watermark."""
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
        """Whose it is; None: of somebody who never sends it again."""
        self.result: dict[str, Unpacked] = {}
        self.index: LogIndex = 0
        """Where it stands in the controller's log, 0 when it never entered it; in the answer to a
        *position*, what is applied."""
