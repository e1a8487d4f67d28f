"""`Runner`: carries out the effects of one node's replicas, on the clockwork that it is given.

Everything that a node does for its replicas happens here: appending to the store, sending messages,
answering tickets, reading entries.

**A pump** lets all replicas that have something to do take a turn. Then it carries out all their
effects together: one `LogStore.append`, then the messages and answers that need no sync, then one
sync for all (group commit, `group_commit.py`). While the writer thread runs a sync, the node goes
on. `Runner.write` is that append. When the node opens or drops replicas, it also writes by
`Runner.write`. Only the short way of a follower (`FastAppend`) appends without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ottla.broker.config import ClusterConfig
from ottla.broker.driver.deadlines import GLANCE, DeadlineWatch
from ottla.broker.driver.endings import close_replica, log_stop, resign
from ottla.broker.driver.fast_append import FastAppend
from ottla.broker.driver.group_commit import Syncer
from ottla.broker.driver.hosted import NOTHING, HostedReplica, Turn, term_of, unheard
from ottla.broker.driver.look_driver import LookDriver
from ottla.broker.driver.notices import Notices
from ottla.broker.driver.reading import Reading
from ottla.broker.driver.sender import MessageSender, Sender
from ottla.broker.event_loop.alarm import Alarm
from ottla.broker.event_loop.clockwork import Clockwork
from ottla.broker.event_loop.scheduler import MOST_TURNS, Scheduler
from ottla.broker.heartbeats.heartbeats import Beat, BeatAck, Heartbeats
from ottla.broker.turn.effects import EntriesRead
from ottla.broker.turn.looks import Looks
from ottla.broker.turn.replica import Replica
from ottla.broker.turn.tickets import Ticket, answer, not_stored
from ottla.broker.turn.watcher import Watcher
from ottla.log.store import LogStore, Write
from ottla.raft.messages import AppendEntries, Message, RequestVote
from ottla.raft.types import GroupId, Micros, NodeId


class Runner:
    """See the module's docstring. All methods run on the loop's thread."""

    def __init__(
        self,
        node: NodeId,
        config: ClusterConfig,
        *,
        store: LogStore,
        sender: Sender,
        beats: Heartbeats,
        scheduler: Scheduler,
        clockwork: Clockwork,
        looks: Looks,
    ):
        self.node = node
        self.config = config
        self.beats = beats
        self.hosted_replicas: dict[GroupId, HostedReplica] = {}
        self.paused = self._closed = False
        self.failed: Exception | None = None
        """The error for which this node has stopped; None while it works."""
        self._on_failed: Callable[[Exception], None] = unheard
        self.write: Callable[[Sequence[Write]], None] = store.append
        """See the module's docstring. Raises `StoreError`."""
        self._turns = 0
        self._sender = sender
        soon = clockwork.call_soon
        self._term_of = partial(term_of, self.hosted_replicas)
        self._reading = Reading(store, later=soon, submit=self.submit, broken=self.broken)
        self._message_sender = MessageSender(
            node, store, sender, reading=self._reading, term_of=self._term_of
        )
        self._scheduler = scheduler
        self._looks = looks
        LookDriver(looks, soon, self.hosted_replicas, self.submit)
        self._now = clockwork.now
        self.deadlines = DeadlineWatch(
            node, config, beats=beats, hosted_replicas=self.hosted_replicas
        )
        self._notices = Notices(beats, self.deadlines)
        self._alarm = Alarm(clockwork, self._ring)
        self._dirty: list[HostedReplica] = []
        self._marked = False
        self._unsaid: list[Turn] = []
        """Turns that became durable while this node was paused."""
        self.syncer: Syncer[Turn] = Syncer(
            store, config, clockwork=clockwork, on_durable=self._durable, on_failed=self.broken
        )
        self._fast_append = FastAppend(node, self.syncer, sender=sender, store=store)

    @property
    def turns(self) -> int:
        """How many turns were taken so far."""
        return self._turns + self._fast_append.turns

    @property
    def syncs(self) -> int:
        """How many syncs were begun so far."""
        return self.syncer.syncs + self._fast_append.syncs

    def report_to(
        self,
        *,
        failed: Callable[[Exception], None],
        role: Callable[[HostedReplica], None] = unheard,
        applied: Callable[[HostedReplica], None] = unheard,
    ) -> None:
        """Set the node's functions, before the first turn: for when the runner fails, when a
        replica's role, term or leader changed, and when a replica has applied more."""
        self._on_failed = failed
        self._notices.report_to(role, applied)

    def watch(self, watcher: Watcher) -> None:
        """Report changes of the replicas to `watcher`, from now on."""
        self._notices.watch(watcher)

    # --- replicas -----------------------------------------------------------------------------

    def add(self, replica: Replica, *, urgent: bool = False) -> HostedReplica:
        """Add a replica; it gets its first turn soon. `urgent`: see `HostedReplica`."""
        hosted = HostedReplica(replica, urgent)
        self.hosted_replicas[replica.group] = hosted
        self.beats.term_moved(replica.group)
        self.wake(hosted)
        return hosted

    def remove(self, group: GroupId) -> None:
        """Remove a replica and answer its open tickets. The caller deletes its log."""
        hosted = self.hosted_replicas.pop(group, None)
        if hosted is not None:
            self.deadlines.forget(group)
            self.beats.forget(group)
            self.beats.term_moved(group)
            if hosted.dirty:
                self._dirty.remove(hosted)
            self._close(hosted)

    def submit(self, hosted: HostedReplica, item: Ticket | EntriesRead | Message) -> None:
        """Put an input into a replica's inbox, and give the replica a turn soon."""
        hosted.replica.submit(item)
        if not hosted.dirty:
            self.wake(hosted)

    def wake(self, hosted: HostedReplica) -> None:
        """Give this replica a turn soon. A removed replica only answers its tickets."""
        if hosted.gone:
            self._close(hosted)
        elif not hosted.dirty:
            hosted.dirty = True
            self._dirty.append(hosted)
            if not self._marked:
                self._marked = True
                self._scheduler.mark(self)

    def receive(self, message: Message) -> bool:
        """Take a Raft message of another node. False: this node has no replica of its group."""
        hosted = self.hosted_replicas.get(message.group)
        if hosted is None:
            return False
        if message.__class__ is AppendEntries:
            now = self._now()
            if self._fast_append.take(hosted, message, now):
                if hosted.replica.applied != hosted.applied or not (
                    now < hosted.look_at <= now + GLANCE
                ):
                    self._look_around(((hosted, NOTHING),), now)
                return True
        if isinstance(message, RequestVote):
            self.deadlines.vouch(hosted)
        hosted.replica.submit(message)
        if not hosted.dirty:
            self.wake(hosted)
        return True

    # --- pumping ------------------------------------------------------------------------------

    def pump(self) -> None:
        """Let all replicas that have something to do take a turn, and carry out their effects."""
        self._marked = False
        if self.paused or self._closed:
            return
        now = self._now()
        taken: list[Turn] = []
        try:
            self._take_turns(taken, now)
        except Exception:
            # Batches of tickets that are not answered yet may not be stored (promise-R5).
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
        for hosted in dirty:
            hosted.dirty = False
            if hosted.trusting or hosted.look_at <= now:
                self.deadlines.before_turn(hosted)
            effects = hosted.replica.turn(now)
            taken.append((hosted, effects))
            if effects.writes:
                writes += effects.writes
        self._turns += count
        if writes:
            self.write(writes)
        for turn in taken:
            self._perform(turn)

    def _put_off(self, dirty: list[HostedReplica]) -> int:
        """Keep `MOST_TURNS` of `dirty`; the others take their turns in the next iteration of the
        loop. Returns `MOST_TURNS`."""
        self._dirty, dirty[MOST_TURNS:] = dirty[MOST_TURNS:], []
        self._marked = True
        self._scheduler.mark_later(self)
        return MOST_TURNS

    def _look_around(self, taken: Sequence[Turn], now: Micros) -> None:
        """Report what these turns changed to the rest of the node, and set the alarm if need be."""
        moved = (rings_at := self._alarm.at) is None or self.beats.deadline() < rings_at
        for hosted, _ in taken:
            moved |= self._notices.after_turn(hosted, now)
        if moved or self.syncer.due is not None:
            self._arm()

    def _perform(self, turn: Turn) -> None:
        hosted, effects = turn
        for message in effects.messages:
            self._message_sender.send(message, effects.writes)
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
            self._reading.read_back(hosted, *effects.read)
        if effects.dropped:
            self._notices.on_dropped(hosted, effects.dropped)

    # --- messages -----------------------------------------------------------------------------

    def on_beat(self, beat: Beat) -> None:
        """Another node vouches for the groups that it leads. If this node's disk hangs, it does not
        acknowledge: otherwise a leader could rely on followers that cannot write, lead for ever and
        commit nothing (sim-S69)."""
        now = self._now()
        if beat.ack is not None:
            self.on_beat_ack(beat.ack)
        ack, heartbeats = self.beats.on_beat(beat, now, self._term_of)
        for heartbeat in heartbeats:
            self.submit(self.hosted_replicas[heartbeat.group], heartbeat)
        changed = self.beats.take_changed()
        if beat.items or beat.full:
            self._wake_all(self.deadlines.beat_taken(beat, changed, now))
        if not self.syncer.stalled() and not self.beats.rides(beat, ack):
            self._sender.send(self.node, ack.to, ack)

    def on_beat_ack(self, ack: BeatAck) -> None:
        """Another node acknowledges that it follows in groups that this node leads."""
        now = self._now()
        for message in self.beats.on_ack(ack, now):
            self.receive(message)
        refused = self.beats.take_changed()
        if refused:
            self._wake_all(self.deadlines.doubt_all(refused, now))

    def _wake_all(self, due: Iterable[HostedReplica]) -> None:
        """Give these replicas a turn, and set the alarm if others have to be looked at."""
        for hosted in due:
            self.wake(hosted)
        if self.deadlines.doubts:
            self._arm()

    # --- durable, or not ----------------------------------------------------------------------

    def _durable(self, covered: Sequence[Turn]) -> None:
        """These turns are durable: send their messages, and tell the cores."""
        if self.paused:
            self._unsaid.extend(covered)
            return
        try:
            self._echo(covered, self._now())
        except Exception as error:  # noqa: BLE001 - the caller of this callback would only log it
            self.broken(error)

    def _echo(self, covered: Sequence[Turn], now: Micros) -> None:
        for hosted, effects in covered:
            for message in effects.messages_after:
                if message.to == self.node:
                    self.submit(hosted, message)
                else:
                    self._message_sender.send(message)
            if effects.persisted is not None:
                index, term = effects.persisted
                if hosted.replica.synced(index, term, now):
                    self.wake(hosted)

    def broken(self, error: Exception) -> None:
        """The store failed or an invariant is broken: this node stops, the others go on. Open
        tickets are answered as the node stops."""
        log_stop(self.node, error)
        self.failed = error
        self._on_failed(error)

    # --- time ---------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Set the node's one alarm to the earliest time at which something is due."""
        at = self.beats.deadline()
        for other in (self.deadlines.next(), self.syncer.due):
            if other is not None and other < at:
                at = other
        self._alarm.set(at)

    def _ring(self) -> None:
        if self._closed or self.paused:
            return
        try:
            self._do_what_is_due(self._now())
        except Exception as error:  # noqa: BLE001 - a node whose alarm failed must stop
            self.broken(error)

    def _do_what_is_due(self, now: Micros) -> None:
        self._reading.refill()
        if self.syncer.stalled():
            for hosted in resign(self.hosted_replicas.values(), now):
                self.wake(hosted)
        for beat in self.beats.due(now):
            self._sender.send(self.node, beat.to, beat)
        for hosted in self.deadlines.due(now):
            self.wake(hosted)
        self.syncer.poll()
        self._arm()

    # --- ends ---------------------------------------------------------------------------------

    def _close(self, hosted: HostedReplica) -> None:
        hosted.gone, hosted.dirty = True, False
        close_replica(hosted, self.node, self._now(), self.failed)

    def pause(self) -> None:
        """Stop doing anything, like a process that the operating system has stopped (SIGSTOP)."""
        self.paused = True
        self._reading.hold()
        self._alarm.stop()

    def resume(self) -> None:
        """Continue after `pause`."""
        self.paused = False
        self._reading.release()
        unsaid, self._unsaid = self._unsaid, []
        self._durable(unsaid)
        if not self._marked:
            self._marked = True
            self._scheduler.mark(self)
        self._arm()

    def close(self) -> None:
        """Stop for good and answer all open tickets. The caller closes the store."""
        self._closed = True
        self._dirty = []
        self._reading.close()
        for hosted in self.hosted_replicas.values():
            self._close(hosted)
        self.syncer.close()
        self._alarm.stop()
