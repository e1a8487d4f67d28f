"""`Replica`: one member of one Raft group, taking turns (docs/explanation/architecture.md).

A replica joins a `RaftCore` (what is agreed) and a `Machine` (what it means). All its inputs go
into its inbox: messages of other members, tickets of clients, completed reads. A *turn* drains the
inbox, calls the core and the machine until nothing changes any more, and returns one `Effects`
value. All decisions are made in turns, and a turn does no I/O. So the same code runs in a user's
test, in production and under the simulator's clock.

Entries that are appended and not yet applied are kept in `_tail`, so that a commit needs no read.
After a restart the tail may be empty although the log is not. Then the turn asks for the missing
entries by an effect (`Effects.read`), and they come back as an input (`EntriesRead`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ottla.broker.turn.effects import Effects, EntriesRead
from ottla.broker.turn.machine import Compaction, Machine, find_log_watcher
from ottla.broker.turn.tickets import Ticket
from ottla.log.store import Write
from ottla.raft.core import RaftCore
from ottla.raft.messages import (
    AppendEntries,
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    Message,
    SnapshotReply,
)
from ottla.raft.ready import BarrierOutcome, Ready, SoftState
from ottla.raft.roles import Role
from ottla.raft.types import (
    AppendRange,
    Entry,
    GroupId,
    HardState,
    LogIndex,
    Micros,
    NodeId,
    Snapshot,
    SnapshotMeta,
    Term,
)

MOST_UNAPPLIED = 256
"""`Replica.follow` applies committed entries only if there are this many; fewer wait for the next
turn, which applies them together."""

Input: TypeAlias = Message | Ticket | EntriesRead


class Replica:
    """See the module's docstring. `submit` only adds to the inbox; `turn` does the work."""

    __slots__ = (
        "_barriers",
        "_due",
        "_inbox",
        "_last_index",
        "_leadership",
        "_log_watcher",
        "_reading",
        "_tail",
        "applied",
        "core",
        "group",
        "machine",
        "soft",
        "submit",
    )

    def __init__(
        self, group: GroupId, core: RaftCore, machine: Machine, unapplied: Sequence[Entry] = ()
    ):
        """`unapplied`: the last entries of the log, if the caller has them in memory."""
        self.group = group
        self.core = core
        self.machine = machine
        self.soft = SoftState(core.role, core.term, core.leader)
        """Role, term and leader as of the last turn."""
        self.applied: LogIndex = core.log.first_index - 1
        """The last index that the machine has applied; at first, that of its snapshot."""
        self._last_index: LogIndex = core.last_index
        """The last index that the log watcher has seen."""
        self._leadership = machine.leadership
        self._leadership.follow(core.leader, core.term)  # who starts anew has a term already
        self._log_watcher = find_log_watcher(machine)
        self._inbox: list[Input] = []
        self.submit: Callable[[Input], None] = self._inbox.append
        """Add an input to the inbox."""
        self._tail: deque[Entry] = deque(unapplied)
        self._reading = False
        self._barriers: deque[int] = deque()
        self._due: Micros = 0
        """No deadline is due before this time; 0 if that is not known."""

    # --- inputs -------------------------------------------------------------------------------

    def vouch(self, message: Heartbeat | HeartbeatReply, at: Micros) -> None:
        """A heartbeat between nodes vouches for this group at time `at`, which may be in the
        past."""
        self.core.step(message, at)
        if isinstance(message, HeartbeatReply):
            self._leadership.follower_contact(message.sender, at)

    def synced(self, index: LogIndex, term: Term, now: Micros) -> bool:
        """Entries up to `index` are durable; the entry at `index` has `term`. True: a turn is
        due."""
        self.core.persisted(index, term, now)
        return self.core.has_ready()

    def step_down(self, now: Micros) -> None:
        """The outcome of a local write is uncertain: resign (promise-R5)."""
        self.core.step_down(now)

    def campaign(self, now: Micros) -> None:
        """Start an election, as if the election timeout had passed, for an administrator or a
        test."""
        self.core.campaign(now)

    def transfer(self, to: NodeId, now: Micros) -> bool:
        """Start to transfer the leadership to `to`. False if it cannot begin (see
        `RaftCore.transfer`)."""
        return self.core.transfer(to, now)

    def close(self, now: Micros) -> list[Ticket]:
        """The replica ends: it no longer leads. Returns all its open tickets, answered
        NOT_LEADER_OR_FOLLOWER; the fate of their batches is unknown."""
        core, machine = self.core, self.machine
        core.step_down(now)
        self.soft = SoftState(core.role, core.term, core.leader)
        if self._leadership.close():
            machine.resign()
        inbox = self._inbox[:]
        self._inbox.clear()
        for item in inbox:
            if isinstance(item, Ticket) and not item.done:
                machine.submit(item, now)
        outbox = machine.outbox
        answers = [*outbox.now, *outbox.after_append]
        outbox.now, outbox.after_append = [], []
        return answers

    def deadline(self) -> Micros | None:
        """When a turn is due even if no input arrives. Turns before that time do not check the
        deadlines."""
        due, machine = self.core.deadline, self.machine.deadline()
        if due is None or (machine is not None and machine < due):
            due = machine
        self._due = 0 if due is None else due
        return due

    def work_deadline(self) -> Micros | None:
        """As `deadline`, but without election timeout and check-quorum, which a heartbeat moves."""
        self._due = 0
        mine, machine = self.core.work_deadline, self.machine.deadline()
        if mine is None or machine is None:
            return mine if machine is None else machine
        return min(mine, machine)

    # --- the turn -----------------------------------------------------------------------------

    def follow(self, message: AppendEntries, now: Micros) -> AppendReply | None:
        """The turn of an idle follower that gets the next entries of its log (see
        `ottla.broker.driver.fast_append`).

        The caller must write `message.entries`, call `synced`, and then send the reply that is
        returned. Committed entries may be left to the next `turn`. None: nothing was done, and the
        caller must `submit` the message.
        """
        reply = None if self._inbox else self.core.follow(message, now)
        if reply is not None:
            self._tail.extend(message.entries)
            self._last_index = message.last_index
            self._log_watcher.appended(message.entries)
            commit, next_index = self.core.commit, self.applied + 1
            if commit >= next_index + MOST_UNAPPLIED and self._tail[0].index == next_index:
                self._apply_committed(self.core.take_commit(), Effects(self.group), now)
        return reply

    def turn(self, now: Micros) -> Effects:
        """Drain the inbox, decide, and return the effects."""
        effects = Effects(self.group)
        # The inbox is cleared afterwards: if this raises, `close` still finds the tickets in it.
        self._take_in(self._inbox, effects, now)
        self._inbox.clear()
        if now < self._due:
            self._settle(effects, now)
        else:
            self._settle_due(effects, now)
        outbox = self.machine.outbox
        if outbox.now or outbox.after_append or outbox.enqueued:
            if outbox.resigns:
                self._resign(effects, now)
            outbox.hand_over(effects)
        return effects

    def _resign(self, effects: Effects, now: Micros) -> None:
        """The machine resigns, if the term is still the one that it means."""
        term, self.machine.outbox.resigns = self.machine.outbox.resigns, 0
        if self.core.term == term:
            self.core.step_down(now)
            self._settle(effects, now)

    def _take_in(self, inbox: Sequence[Input], effects: Effects, now: Micros) -> None:
        core, machine = self.core, self.machine
        doubt = True
        for item in inbox:
            if isinstance(item, Ticket):
                if doubt and self.leading and core.role is not Role.LEADER:
                    # The machine must see that it lost the leadership before it gets a ticket.
                    self._settle(effects, now)
                doubt = False
                machine.submit(item, now)
                self._due = min(self._due, item.deadline)
            elif isinstance(item, EntriesRead):
                self._apply_read(item, now)
            else:
                doubt = True
                core.step(item, now)
                if item.__class__ is AppendReply and item.success:
                    self._progress(item, item.match, now)
                elif item.__class__ is SnapshotReply and item.done:
                    self._progress(item, item.index, now)

    def _progress(self, reply: AppendReply | SnapshotReply, match: LogIndex, now: Micros) -> None:
        """A follower says that it holds everything up to `match`. The in-sync rule ignores a reply
        of an earlier term, because the follower may have truncated its log since, and a reply that
        claims more entries than there are. The core ignores both, too."""
        core = self.core
        if reply.term == core.term and match <= core.last_index:
            self._leadership.follower_progress(reply.sender, match, core.last_index, now)

    def _settle_due(self, effects: Effects, now: Micros) -> None:
        """As `_settle`, when a deadline may have passed."""
        self._due = 0
        core, machine = self.core, self.machine
        at = core.deadline
        if at is not None and at <= now:
            core.advance(now)
        self._settle(effects, now)
        # After the inbox: so a client with a time limit of 0 still gets its real offset.
        at = machine.deadline()
        if at is not None and at <= now:
            machine.tick(now)
            self._settle(effects, now)

    def _settle(self, effects: Effects, now: Micros) -> None:
        """Propose, start barriers, take the core's `Ready`, apply; again as long as the machine may
        have more to propose or the core has more effects."""
        core, machine = self.core, self.machine
        barriers, outbox = self._leadership.barriers, machine.outbox
        moved = True
        while moved:
            if machine.has_pending() or barriers.found:
                self._propose(now)
            moved = core.has_effects() and self._absorb(core.ready(), effects, now)
            commit = core.take_commit()
            if commit > self.applied and self._apply_committed(commit, effects, now):
                moved = True
            compaction = outbox.compaction
            if compaction is not None and compaction.index <= core.log.persisted:
                self._compact(compaction, effects)
            if moved:
                moved = machine.has_pending() or len(barriers.found) > 0 or core.has_effects()

    def _propose(self, now: Micros) -> None:
        """Propose what the machine's leader queue has, and start barriers."""
        core, machine = self.core, self.machine
        if core.role is Role.LEADER:
            # Bytes that are proposed and not yet committed count against the queue's budget.
            inflight_bytes = core.log.bytes_between(core.commit, core.last_index)
            proposals = machine.take_proposals(inflight_bytes, now)
            if proposals is not None:
                machine.proposed(core.propose(proposals.items, proposals.expected_term))
        for _ in range(self._leadership.take_barriers()):
            self._barriers.append(core.barrier(now))

    def _absorb(self, ready: Ready, effects: Effects, now: Micros) -> bool:
        if ready.soft is not None:
            self._change_role(ready.soft, now)
        if ready.snapshot is not None:
            self._install(ready.snapshot, effects, now)
        for appended in ready.append:
            self._append(appended, effects)
        if ready.hard_state is not None:
            self._remember(ready.hard_state, effects)
        if ready.messages:
            effects.messages = (*effects.messages, *ready.messages)
        if ready.messages_after:
            effects.messages_after = (*effects.messages_after, *ready.messages_after)
        for outcome in ready.barriers:
            self._barrier_ended(outcome)
        return ready.soft is not None or len(ready.barriers) > 0

    def _change_role(self, soft: SoftState, now: Micros) -> None:
        self.soft = soft
        if soft.role is Role.LEADER:
            term_start = self.core.term_start
            assert term_start is not None, f"leads term {soft.term} without a first entry"
            if self._leadership.stop():  # it led another term until now
                self.machine.resign()
            self._leadership.begin(soft.term, soft.leader, term_start, now)
        elif self._leadership.follow(soft.leader, soft.term):
            self.machine.resign()

    def _barrier_ended(self, outcome: BarrierOutcome) -> None:
        started = self._barriers.popleft()
        assert started == outcome.ticket, f"barrier {outcome.ticket} ended before {started}"
        self._leadership.barriers.ended(outcome.index is not None)

    # --- the log ------------------------------------------------------------------------------

    def _append(self, appended: AppendRange, effects: Effects) -> None:
        tail, first = self._tail, appended.first
        truncate = first <= self._last_index
        if truncate:
            dropped: list[Entry] = []
            while tail and tail[-1].index >= first:
                dropped.append(tail.pop())
            effects.dropped = (*effects.dropped, *reversed(dropped))
            self._log_watcher.truncated(first)
        tail.extend(appended.entries)
        self._log_watcher.appended(appended.entries)
        write = Write(self.group, first=first, truncate=truncate, entries=appended.entries)
        effects.writes = (*effects.writes, write)
        last = appended.entries[-1]
        self._last_index = last.index
        effects.persisted = (last.index, last.term)

    def _remember(self, hard_state: HardState, effects: Effects) -> None:
        if effects.writes:
            effects.writes[-1].hard_state = hard_state
        else:
            effects.writes = (Write(self.group, hard_state=hard_state),)

    def _install(self, snapshot: Snapshot, effects: Effects, now: Micros) -> None:
        """A snapshot from the leader replaces log and state."""
        self._tail.clear()
        self.machine.restore(snapshot, now)
        self.applied = self._last_index = snapshot.meta.index
        effects.writes = (*effects.writes, Write(self.group, snapshot=snapshot, reset=True))
        effects.persisted = (snapshot.meta.index, snapshot.meta.term)

    def _compact(self, compaction: Compaction, effects: Effects) -> None:
        """Store the machine's snapshot and drop the entries that it replaces."""
        self.machine.outbox.compaction = None
        index, data = compaction.index, compaction.data
        term = self.core.log.term_at(index)
        assert term is not None, f"no term at {index} to compact to"
        meta = SnapshotMeta(index, term, self.core.voters, len(data))
        write = Write(self.group, snapshot=Snapshot(meta, data), compact_to=index)
        effects.writes = (*effects.writes, write)
        self.core.compact(meta)

    def _apply_committed(self, commit: LogIndex, effects: Effects, now: Micros) -> bool:
        """Apply committed entries that are in memory; ask for a read if they are not. True: some
        were applied."""
        tail = self._tail
        first = self.applied + 1
        if not tail or tail[0].index > first:
            if not self._reading:
                self._reading = True
                effects.read = (first, min(commit, tail[0].index - 1) if tail else commit)
            return False
        if tail[-1].index <= commit:  # nearly always
            entries = list(tail)
            tail.clear()
        else:
            entries = [tail.popleft() for _ in range(commit - first + 1)]
        self.machine.apply(entries, now)
        self.applied = entries[-1].index
        return True

    def _apply_read(self, read: EntriesRead, now: Micros) -> None:
        """Apply entries that were read from the store. A snapshot may have replaced them meanwhile;
        then they are ignored."""
        self._reading = False
        first, commit = self.applied + 1, self.core.commit
        entries = [each for each in read.entries if first <= each.index <= commit]
        if entries and entries[0].index == first:
            self.machine.apply(entries, now)
            self.applied = entries[-1].index

    # --- views --------------------------------------------------------------------------------

    @property
    def leading(self) -> bool:
        """Whether this node leads, as of the last turn."""
        return self.soft.role is Role.LEADER

    @property
    def leadership(self) -> tuple[NodeId, Term]:
        """Leader and term as of the last turn; the leader is 0 if none is known."""
        return self.soft.leader, self.soft.term
