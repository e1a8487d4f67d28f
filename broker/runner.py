"""`Runner`: carries out the effects of one node's replicas. One of exactly two drivers.

Everything a node does to the outside world on behalf of its replicas happens here: appending to the
store, sending messages, answering tickets, reading entries. (The other driver is the
simulator's kernel.) The runner decides nothing; it may only be late.

**A pump** lets every replica that has something to do take its turn, then performs all their
effects together: one `LogStore.append`, then the messages and answers that need no disk, then one
sync for all of them (group commit, `syncing.py`). While a sync is under way in the writer thread,
the node goes on taking turns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from ottla.broker.beats import Beat, BeatAck, BeatBook
from ottla.broker.carrier import Carrier, Sender
from ottla.broker.clockwork import Cancel, Clockwork
from ottla.broker.commands import ProduceTicket, Ticket
from ottla.broker.config import ClusterConfig
from ottla.broker.effects import EntriesRead
from ottla.broker.errors import ErrorCode
from ottla.broker.lookout import Lookout
from ottla.broker.replica import Replica
from ottla.broker.scheduler import Scheduler
from ottla.broker.seat import Seat, Turn
from ottla.broker.syncing import Syncer
from ottla.log.errors import StoreError
from ottla.log.store import LogStore, Write
from ottla.raft.messages import (
    Message,
    RequestVote,
)
from ottla.raft.roles import Role
from ottla.raft.types import Entry, GroupId, LogIndex, Micros, NodeId, Term

log = logging.getLogger("ottla")

READ_BYTES = 4 << 20
"""Most bytes read at once to catch up a machine after a restart."""


def _unheard(*_: object) -> None:
    """Nobody wants to know."""


class Runner:
    """See the module's text. All methods run on the loop's thread."""

    def __init__(
        self,
        node: NodeId,
        config: ClusterConfig,
        *,
        store: LogStore,
        sender: Sender,
        beats: BeatBook,
        scheduler: Scheduler,
        clockwork: Clockwork,
    ):
        self.node = node
        self.config = config
        self.store = store
        self.beats = beats
        self.seats: dict[GroupId, Seat] = {}
        self.paused = False
        self.failed: Exception | None = None
        """The store's error, once it failed: this node does nothing any more."""
        # Who wants to know; the node sets these before the first turn.
        self.on_failed: Callable[[Exception], None] = _unheard
        self.on_role: Callable[[Seat], None] = _unheard
        self.on_applied: Callable[[Seat], None] = _unheard
        self.on_dropped: Callable[[Seat, Sequence[Entry]], None] = _unheard
        self.turns = 0
        """Turns taken so far."""
        self._sender = sender
        self._carrier = Carrier(node, store, sender)
        self._scheduler = scheduler
        self._clockwork = clockwork
        self._now = clockwork.now
        self.lookout = Lookout(node, config, beats=beats, seats=self.seats, wake=self.wake)
        self._alarm: Cancel | None = None
        self._alarm_at: Micros = 0
        self._dirty: list[Seat] = []
        self._marked = False
        self._unsaid: list[Turn] = []
        """Turns that became durable while this node was paused."""
        self._closed = False
        self.syncer: Syncer[Turn] = Syncer(
            store,
            config,
            clockwork=clockwork,
            on_durable=self._durable,
            on_failed=self._stop,
        )

    # --- replicas -----------------------------------------------------------------------------

    def add(self, replica: Replica, *, urgent: bool = False) -> Seat:
        """Take a replica in; it gets its first turn soon. `urgent`: see `Seat`."""
        seat = Seat(replica, urgent)
        self.seats[replica.group] = seat
        self.beats.term_moved(replica.group)
        self.wake(seat)
        return seat

    def remove(self, group: GroupId) -> None:
        """Let a replica go, and tell whoever waits on it; its store is the caller's to delete."""
        seat = self.seats.pop(group, None)
        if seat is not None:
            self.lookout.forget(group)
            self.beats.forget(group)
            self.beats.term_moved(group)
            seat.gone = True
            if seat.dirty:
                self._dirty.remove(seat)
                seat.dirty = False
            self._answer(seat.replica.close(self._now()))

    def submit(self, seat: Seat, item: Ticket | EntriesRead | Message) -> None:
        """Put something into a replica's inbox and see that it gets its turn."""
        seat.replica.submit(item)
        if not seat.dirty:
            self.wake(seat)

    def wake(self, seat: Seat) -> None:
        """See that this replica gets a turn soon; one that is gone only answers."""
        if seat.gone:
            self._answer(seat.replica.close(self._now()))
        elif not seat.dirty:
            seat.dirty = True
            self._dirty.append(seat)
            if not self._marked:
                self._marked = True
                self._scheduler.mark(self)

    def receive(self, message: Message) -> bool:
        """A Raft message of another node. False: its group is not known here."""
        seat = self.seats.get(message.group)
        if seat is None:
            return False
        if isinstance(message, RequestVote):
            self.lookout.vouch(seat)
        seat.replica.submit(message)
        if not seat.dirty:
            self.wake(seat)
        return True

    # --- pumping ------------------------------------------------------------------------------

    def pump(self) -> None:
        """Let everyone who has something to do take a turn, then perform the effects together."""
        self._marked = False
        if self.paused or self._closed:
            return
        dirty, self._dirty = self._dirty, []
        now = self._now()
        taken: list[Turn] = []
        writes: list[Write] = []
        for seat in dirty:
            seat.dirty = False
            if seat.trusting:
                self.lookout.before_turn(seat)
            effects = seat.replica.turn(now)
            taken.append(Turn(seat, effects))
            if effects.writes:
                writes.extend(effects.writes)
        self.turns += len(dirty)
        if writes:
            try:
                self.store.append(writes)
            except StoreError as error:
                self._fail(error, taken)
                return
        for turn in taken:
            self._perform(turn)
        self.syncer.poll()
        if not self._closed:
            self._look_around(taken, now)

    def _look_around(self, taken: Sequence[Turn], now: Micros) -> None:
        """Tell the rest of the node what these turns changed, and when to wake for them again."""
        moved = self._alarm is None
        for turn in taken:
            moved = self._notice(turn.seat, now) or moved
        if moved or self.syncer.due is not None or self.beats.deadline() < self._alarm_at:
            self._arm()

    def _perform(self, turn: Turn) -> None:
        effects, send = turn.effects, self._carrier.send
        for message in effects.messages:
            send(message, effects.writes)
        for staged in effects.enqueued:
            if staged.on_enqueued is not None:
                staged.on_enqueued(staged)
        if effects.answers:
            self._answer(effects.answers)
        if effects.answers_after_append:
            self._answer(effects.answers_after_append)
        if effects.writes or effects.messages_after:
            self.syncer.add(turn)
        if effects.read is not None:
            self._read(turn.seat, *effects.read)
        if effects.dropped:
            self.on_dropped(turn.seat, effects.dropped)

    def _answer(self, tickets: Iterable[Ticket]) -> None:
        """Tell whoever submitted them; what goes wrong there is not the replica's fault."""
        for ticket in tickets:
            try:
                ticket.on_done(ticket)
            except Exception:
                log.exception("node %d: an answer could not be delivered", self.node)

    def _read(self, seat: Seat, first: LogIndex, last: LogIndex) -> None:
        entries = self.store.read(seat.group, first, last, READ_BYTES)
        self.submit(seat, EntriesRead(entries))

    def _notice(self, seat: Seat, now: Micros) -> bool:
        """What other parts of the node want to know after a turn. True: a look moved."""
        if seat.gone:
            return False
        replica = seat.replica
        if replica.soft is not seat.soft:
            seat.soft = replica.soft
            self.lookout.doubt(seat)
            self._tell_beats(seat)
            self.on_role(seat)
        if replica.core.term != seat.term:
            seat.term = replica.core.term
            self.beats.term_moved(seat.group)
        commit = replica.core.commit
        if commit != seat.commit:
            seat.commit = commit
            if seat.soft.role is Role.LEADER:
                self.beats.committed(seat.group, commit, replica.core.commit_known_to)
        applied = replica.applied
        if applied != seat.applied:
            # Not the commit: after a restart entries are applied a turn later, when they are read.
            seat.applied = applied
            self.on_applied(seat)
        if seat.urgent and seat.soft.role is Role.LEADER:
            self.beats.urgent(seat.group)
        return self.lookout.after_turn(seat, now)

    def _tell_beats(self, seat: Seat) -> None:
        soft, core = seat.soft, seat.replica.core
        if soft.role is Role.LEADER:
            followers = tuple(each for each in core.voters if each != self.node)
            self.beats.leading(seat.group, soft.term, followers, core.commit)
        else:
            self.beats.not_leading(seat.group)

    # --- messages -----------------------------------------------------------------------------

    def on_beat(self, beat: Beat) -> None:
        """Another node vouches for the groups it leads."""
        now = self._now()
        ack, heartbeats = self.beats.on_beat(beat, now, self._term_of)
        for heartbeat in heartbeats:
            self.submit(self.seats[heartbeat.group], heartbeat)
        if beat.items or beat.full:
            self.lookout.beat_taken(beat, now)
        self._sender.send(self.node, ack.to, ack)

    def on_beat_ack(self, ack: BeatAck) -> None:
        """Another node follows the groups we lead."""
        now = self._now()
        for message in self.beats.on_ack(ack, now):
            self.receive(message)
        if ack.higher_terms:
            self.lookout.ack_taken(ack, now)

    def _term_of(self, group: GroupId) -> Term | None:
        seat = self.seats.get(group)
        return None if seat is None else seat.replica.core.term

    # --- durable, or not ----------------------------------------------------------------------

    def _durable(self, covered: Sequence[Turn]) -> None:
        """What these turns wrote is on disk: say so, to the others and to the cores."""
        if self.paused:
            self._unsaid.extend(covered)
            return
        now = self._now()
        for turn in covered:
            effects = turn.effects
            for message in effects.messages_after:
                self._carrier.send(message)
            if effects.persisted is not None:
                index, term = effects.persisted
                if turn.seat.replica.synced(index, term, now):
                    self.wake(turn.seat)

    def _fail(self, error: StoreError, turns: Sequence[Turn]) -> None:
        """The store refused these turns: nothing in them may be called done (mission-R5)."""
        for turn in turns:
            tickets = (*turn.effects.answers, *turn.effects.answers_after_append)
            for ticket in tickets:
                if isinstance(ticket, ProduceTicket):
                    ticket.error = ErrorCode.KAFKA_STORAGE_ERROR
            self._answer(tickets)
        self._stop(error)

    def _stop(self, error: StoreError) -> None:
        """The store is gone. What was answered is answered; who still waits hears of the stop."""
        log.error("node %d stops: %s", self.node, error)
        self.failed = error
        self.on_failed(error)

    def broken(self, error: Exception) -> None:
        """An invariant of this node does not hold: it stops, the others go on without it."""
        if isinstance(error, StoreError):
            self._stop(error)
            return
        log.critical("node %d stops, this is a bug of Ottla", self.node, exc_info=error)
        self.failed = error
        self.on_failed(error)

    # --- time ---------------------------------------------------------------------------------

    def _arm(self) -> None:
        """One alarm for everything this node waits for."""
        at = self.beats.deadline()
        first = self.lookout.next()
        if first is not None and first < at:
            at = first
        if self.syncer.due is not None and self.syncer.due < at:
            at = self.syncer.due
        if self._alarm is not None:
            if self._alarm_at <= at:
                return
            self._alarm()
        self._alarm_at = at
        self._alarm = self._clockwork.call_at(at, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._closed or self.paused:
            return
        try:
            self._do_what_is_due(self._now())
        except Exception as error:  # noqa: BLE001 - a node without its alarm must not seem alive
            self.broken(error)

    def _do_what_is_due(self, now: Micros) -> None:
        self._check_stall(now)
        for beat in self.beats.due(now):
            self._sender.send(self.node, beat.to, beat)
        self.lookout.due(now)
        self.syncer.poll()
        self._arm()

    def _check_stall(self, now: Micros) -> None:
        """A sync that hangs leaves every write behind it uncertain: leaders resign."""
        if not self.syncer.stalled():
            return
        for seat in self.seats.values():
            if seat.replica.leading:
                seat.replica.step_down(now)
                self.wake(seat)

    # --- ends ---------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop doing anything, as a process that is stopped by its operating system."""
        self.paused = True
        if self._alarm is not None:
            self._alarm()
            self._alarm = None

    def resume(self) -> None:
        """Go on where `pause` stopped."""
        self.paused = False
        unsaid, self._unsaid = self._unsaid, []
        self._durable(unsaid)
        if not self._marked:
            self._marked = True
            self._scheduler.mark(self)
        self._arm()

    def close(self) -> None:
        """Stop for good and tell whoever still waits; the store is the caller's to close."""
        self._closed = True
        now = self._now()
        for seat in self.seats.values():
            self._answer(seat.replica.close(now))
        self.syncer.close()
        if self._alarm is not None:
            self._alarm()
            self._alarm = None
