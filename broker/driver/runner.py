"""`Runner`: carries out the effects of one node's replicas, by whatever clockwork it is handed.

Everything a node does to the outside world on behalf of its replicas happens here: appending to the
store, sending messages, answering tickets, reading entries.

**A pump** lets replicas that have something to do take their turns, then performs all their effects
together: one `LogStore.append`, then the messages and answers that need no disk, then one sync for
all (group commit, `syncing.py`). While a sync is under way in the writer thread, the node goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.broker.config import ClusterConfig
from ottla.broker.driver.deadlines import GLANCE, Lookout
from ottla.broker.driver.endings import close_replica, log_stop, resign
from ottla.broker.driver.fast_append import Lane
from ottla.broker.driver.group_commit import Syncer
from ottla.broker.driver.hosted import Seat, Turn, unheard
from ottla.broker.driver.look_driver import LookDriver
from ottla.broker.driver.reading import Reading
from ottla.broker.driver.sender import Carrier, Sender
from ottla.broker.event_loop.alarm import Alarm
from ottla.broker.event_loop.clockwork import Clockwork
from ottla.broker.event_loop.scheduler import MOST_TURNS, Scheduler
from ottla.broker.heartbeats.heartbeats import Beat, BeatAck, BeatBook
from ottla.broker.turn.effects import EntriesRead
from ottla.broker.turn.looks import Looks
from ottla.broker.turn.replica import Replica
from ottla.broker.turn.tickets import Ticket, answer, not_stored
from ottla.log.errors import StoreError
from ottla.log.store import LogStore, Write
from ottla.raft.messages import AppendEntries, Message, RequestVote
from ottla.raft.roles import Role
from ottla.raft.types import Entry, GroupId, Micros, NodeId, Term


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
        looks: Looks,
    ):
        self.node = node
        self.config = config
        self.store = store
        self.beats = beats
        self.seats: dict[GroupId, Seat] = {}
        self.paused = self._closed = False
        self.failed: Exception | None = None
        """The store's error, once it failed: this node does nothing any more."""
        self.on_failed: Callable[[Exception], None] = unheard  # set before the first turn, as are:
        self.on_role: Callable[[Seat], None] = unheard
        self.on_applied: Callable[[Seat], None] = unheard
        self.on_dropped: Callable[[Seat, Sequence[Entry]], None] = unheard
        self._turns = 0
        self._sender = sender
        later = clockwork.call_soon
        self._reading = Reading(store, later=later, submit=self.submit, broken=self.broken)
        self._carrier = Carrier(node, store, sender, reading=self._reading, term_of=self._term_of)
        self._scheduler = scheduler
        self._looks = looks
        LookDriver(looks, clockwork.call_soon, self.seats, self.submit)
        self._now = clockwork.now
        self.lookout = Lookout(node, config, beats=beats, seats=self.seats, wake=self.wake)
        self._alarm = Alarm(clockwork, self._ring)
        self._dirty: list[Seat] = []
        self._marked = False
        self._unsaid: list[Turn] = []
        """Turns that became durable while this node was paused."""
        self.syncer: Syncer[Turn] = Syncer(
            store, config, clockwork=clockwork, on_durable=self._durable, on_failed=self.broken
        )
        look, now = self._look_around, clockwork.now
        self._lane = Lane(node, self.syncer, sender=sender, store=store, now=now, look_around=look)

    @property
    def turns(self) -> int:
        """Turns taken so far."""
        return self._turns + self._lane.turns

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
            if seat.dirty:
                self._dirty.remove(seat)
            self._close(seat)

    def submit(self, seat: Seat, item: Ticket | EntriesRead | Message) -> None:
        """Put something into a replica's inbox and see that it gets its turn."""
        seat.replica.submit(item)
        if not seat.dirty:
            self.wake(seat)

    def wake(self, seat: Seat) -> None:
        """See that this replica gets a turn soon; one that is gone only answers."""
        if seat.gone:
            self._close(seat)
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
        if message.__class__ is AppendEntries and self._lane.take(seat, message):
            return True
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
        now = self._now()
        taken: list[Turn] = []
        try:
            self._take_turns(taken, now)
        except Exception:
            # What they have not answered yet may not be called done (mission-R5).
            for _, effects in taken:
                answer(not_stored((*effects.answers, *effects.answers_after_append)), self.node)
            raise
        self.syncer.poll()
        if self._looks.waiting:
            self._looks.plan()
        if not self._closed:
            self._look_around(taken, now)

    def _take_turns(self, taken: list[Turn], now: Micros) -> None:
        dirty, self._dirty = self._dirty, []
        if (count := len(dirty)) > MOST_TURNS:
            count = self._put_off(dirty)
        writes: list[Write] = []
        for seat in dirty:
            seat.dirty = False
            if seat.trusting or seat.look_at <= now:
                self.lookout.before_turn(seat)
            effects = seat.replica.turn(now)
            taken.append((seat, effects))
            if effects.writes:
                writes += effects.writes
        self._turns += count
        if writes:
            self.store.append(writes)
        for turn in taken:
            self._perform(turn)

    def _put_off(self, dirty: list[Seat]) -> int:
        """All but so many take their turns when the loop has been around; returns how many."""
        self._dirty = dirty[MOST_TURNS:]
        del dirty[MOST_TURNS:]
        self._marked = True
        self._scheduler.mark_later(self)
        return MOST_TURNS

    def _look_around(self, taken: Sequence[Turn], now: Micros) -> None:
        """Tell the rest of the node what these turns changed, and when to wake for them again."""
        moved = (rings_at := self._alarm.at) is None or self.beats.deadline() < rings_at
        for seat, _ in taken:
            if self._notice(seat, now):
                moved = True
        if moved or self.syncer.due is not None:
            self._arm()

    def _perform(self, turn: Turn) -> None:
        seat, effects = turn
        for message in effects.messages:
            self._carrier.send(message, effects.writes)
        for staged in effects.enqueued:
            if staged.on_enqueued is not None:
                staged.on_enqueued(staged)
        if effects.answers:
            tickets, effects.answers = effects.answers, ()
            answer(tickets, self.node)
        if effects.answers_after_append:
            tickets, effects.answers_after_append = effects.answers_after_append, ()
            answer(tickets, self.node)
        if effects.writes or effects.messages_after:
            self.syncer.add(turn)
        if effects.read is not None:
            self._reading.read_back(seat, *effects.read)
        if effects.dropped:
            self.on_dropped(seat, effects.dropped)

    def _notice(self, seat: Seat, now: Micros) -> bool:
        """What other parts of the node want to know after a turn. True: a look moved."""
        if seat.gone:
            return False
        replica = seat.replica
        if replica.soft is not seat.soft:
            self._role_moved(seat)
        if seat.leads and seat.commit != (commit := replica.core.commit):
            seat.commit = commit
            self.beats.committed(seat.group, commit, replica.core.commit_known_to)
        if replica.applied != seat.applied:
            # Not the commit: after a restart entries are applied a turn later, when they are read.
            seat.applied = replica.applied
            self.on_applied(seat)
        if seat.urgent and seat.leads:
            self.beats.urgent(seat.group)
        if now < seat.look_at <= now + GLANCE:
            return False
        return self.lookout.after_turn(seat, now)

    def _role_moved(self, seat: Seat) -> None:
        """Role, term or known leader are others than after the last turn."""
        seat.soft = soft = seat.replica.soft
        seat.leads = soft.role is Role.LEADER
        self.lookout.doubt(seat)
        self._tell_beats(seat)
        self.on_role(seat)
        if soft.term != seat.term:
            seat.term = soft.term
            self.beats.term_moved(seat.group)

    def _tell_beats(self, seat: Seat) -> None:
        soft, core = seat.soft, seat.replica.core
        if soft.role is Role.LEADER:
            followers = tuple(each for each in core.voters if each != self.node)
            self.beats.leading(seat.group, soft.term, followers, core.commit)
        else:
            self.beats.not_leading(seat.group)

    # --- messages -----------------------------------------------------------------------------

    def on_beat(self, beat: Beat) -> None:
        """Another node vouches for the groups it leads. Who cannot write follows nobody: a leader
        that counts on disks that hang leads for good and commits nothing (sim-S69)."""
        now = self._now()
        if beat.ack is not None:
            self.on_beat_ack(beat.ack)
        ack, heartbeats = self.beats.on_beat(beat, now, self._term_of)
        for heartbeat in heartbeats:
            self.submit(self.seats[heartbeat.group], heartbeat)
        changed, self.beats.changed = self.beats.changed, {}
        if (beat.items or beat.full) and self.lookout.beat_taken(beat, changed, now):
            self._arm()
        if not self.syncer.stalled() and not self.beats.rides(beat, ack):
            self._sender.send(self.node, ack.to, ack)

    def on_beat_ack(self, ack: BeatAck) -> None:
        """Another node follows the groups we lead."""
        now = self._now()
        for message in self.beats.on_ack(ack, now):
            self.receive(message)
        refused, self.beats.changed = self.beats.changed, {}
        if refused and self.lookout.doubt_all(refused, now):
            self._arm()

    def _term_of(self, group: GroupId) -> Term | None:
        seat = self.seats.get(group)
        return None if seat is None else seat.replica.core.term

    # --- durable, or not ----------------------------------------------------------------------

    def _durable(self, covered: Sequence[Turn]) -> None:
        """What these turns wrote is on disk: say so, to the others and to the cores."""
        if self.paused:
            self._unsaid.extend(covered)
            return
        try:
            self._echo(covered, self._now())
        except Exception as error:  # noqa: BLE001 - a sync ends with nobody above to notice
            self.broken(error)

    def _echo(self, covered: Sequence[Turn], now: Micros) -> None:
        for seat, effects in covered:
            for message in effects.messages_after:
                if message.to == self.node:
                    self.submit(seat, message)
                else:
                    self._carrier.send(message)
            if effects.persisted is not None:
                index, term = effects.persisted
                if seat.replica.synced(index, term, now):
                    self.wake(seat)

    def broken(self, error: Exception) -> None:
        """The store is gone, or an invariant does not hold: this node stops, the others go on. What
        was answered is answered; who still waits hears of the stop."""
        log_stop(self.node, error)
        self.failed = error
        self.on_failed(error)

    # --- time ---------------------------------------------------------------------------------

    def _arm(self) -> None:
        """One alarm for everything this node waits for."""
        at = self.beats.deadline()
        for other in (self.lookout.next(), self.syncer.due):
            if other is not None and other < at:
                at = other
        self._alarm.set(at)

    def _ring(self) -> None:
        if self._closed or self.paused:
            return
        try:
            self._do_what_is_due(self._now())
        except Exception as error:  # noqa: BLE001 - a node without its alarm must not seem alive
            self.broken(error)

    def _do_what_is_due(self, now: Micros) -> None:
        self._reading.refill()
        if self.syncer.stalled():
            resign(self.seats.values(), now, self.wake)
        for beat in self.beats.due(now):
            self._sender.send(self.node, beat.to, beat)
        self.lookout.due(now)
        self.syncer.poll()
        self._arm()

    # --- ends ---------------------------------------------------------------------------------

    def _close(self, seat: Seat) -> None:
        close_replica(seat, self.node, self._now(), isinstance(self.failed, StoreError))

    def pause(self) -> None:
        """Stop doing anything, as a process that is stopped by its operating system."""
        self.paused = True
        self._reading.hold()
        self._alarm.stop()

    def resume(self) -> None:
        """Go on where `pause` stopped."""
        self.paused = False
        self._reading.release()
        unsaid, self._unsaid = self._unsaid, []
        self._durable(unsaid)
        if not self._marked:
            self._marked = True
            self._scheduler.mark(self)
        self._arm()

    def close(self) -> None:
        """Stop for good and tell whoever still waits; the store is the caller's to close."""
        self._closed = True
        self._dirty = []
        self._reading.close()
        for seat in self.seats.values():
            self._close(seat)
        self.syncer.close()
        self._alarm.stop()
