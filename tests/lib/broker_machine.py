"""`MachineDriver`: drives one `Machine` by hand, as its replica would, without any consensus.

A test says what consensus decided (`lead`, `follow`, `commit`, `receive`) and sees what the machine
did (`answered`, `enqueued`, `proposed`). Order and conditions of the calls are those of
`ottla.broker.turn.machine`; the driver keeps the log and the clock, and asserts nothing else.

    driver = MachineDriver(Controller(...))
    driver.lead(term=1)                 # its first entry is appended, not committed
    driver.submit(ticket)
    driver.settle()                     # propose and commit until nothing moves
    assert driver.answered() == [ticket]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from ottla.broker.turn.machine import Compaction, Machine, find_log_watcher
from ottla.broker.turn.tickets import ProduceTicket, Ticket
from ottla.raft.types import Entry, EntryKind, LogIndex, Micros, NodeId, Snapshot, SnapshotMeta

M = TypeVar("M", bound=Machine)
NODE: NodeId = 1


class MachineDriver(Generic[M]):
    """See the module's text. `log[i]` is the entry with index `i + 1`, as long as none is gone."""

    def __init__(self, machine: M) -> None:
        self.machine = machine
        self.now: Micros = 1_000_000
        self.term = 0
        self.is_leader = False
        self.log: list[Entry] = []
        self.committed: LogIndex = 0
        self.compactions: list[Compaction] = []
        """All that the machine asked for."""

    # ---- what consensus does

    def lead(self, term: int) -> None:
        """Win the election of `term`: the empty first entry is appended, not yet committed."""
        self.term, self.is_leader = term, True
        first = len(self.log) + 1
        leadership = self.machine.leadership
        if leadership.stop():
            self.machine.resign()
        leadership.begin(term, NODE, first, self.now)
        self._append([Entry(first, term, EntryKind.EMPTY, b"")])

    def follow(self, term: int, leader: NodeId = 0) -> None:
        """Learn of `term`, in which somebody else leads (0: nobody known)."""
        self.term, self.is_leader = term, False
        if self.machine.leadership.follow(leader, term):
            self.machine.resign()

    def close(self) -> None:
        """The node ends."""
        if self.machine.leadership.close():
            self.machine.resign()

    def receive(self, entries: Sequence[Entry]) -> None:
        """Take entries from a leader; from the first that differs on they replace the own ones."""
        new = [each for each in entries if self.log[each.index - 1 : each.index] != [each]]
        if not new:
            return
        first = new[0].index
        assert first <= len(self.log) + 1, (
            f"entry {first} behind a log that ends at {len(self.log)}"
        )
        if first <= len(self.log):
            assert first > self.committed, f"entry {first} is committed and would be replaced"
            del self.log[first - 1 :]
            find_log_watcher(self.machine).truncated(first)
        self._append(new)

    def propose(self, *, refuse: bool = False, inflight: int = 0) -> list[Entry]:
        """Append what the machine wants to propose; `refuse`: the term is another by now, or
        leadership is being handed over; `inflight`: bytes that are proposed and not committed."""
        proposals = self.machine.take_proposals(inflight, self.now) if self.is_leader else None
        if proposals is None:
            return []
        if refuse or proposals.expected_term != self.term:
            self.machine.proposed(None)
            return []
        first = len(self.log) + 1
        entries = [
            Entry(first + place, self.term, item.kind, item.payload)
            for place, item in enumerate(proposals.items)
        ]
        self.machine.proposed(first)
        self._append(entries)
        return entries

    def commit(self, upto: LogIndex | None = None) -> None:
        """Everything up to `upto` (default: all that is appended) is committed and applied."""
        upto = len(self.log) if upto is None else upto
        entries = self.log[self.committed : upto]
        if entries:
            self.committed = upto
            self.machine.apply(entries, self.now)
            if self.machine.outbox.compaction is not None:
                self.compactions.append(self.machine.outbox.compaction)
                self.machine.outbox.compaction = None

    def settle(self) -> None:
        """Commit and propose until nothing moves any more."""
        self.commit()
        while self.propose():
            self.commit()

    # ---- what happens to the machine

    def submit(self, *tickets: Ticket) -> None:
        """Put commands in, in this order."""
        for ticket in tickets:
            self.machine.submit(ticket, self.now)

    def sleep(self, span: Micros) -> None:
        """Let time pass; the machine is woken if it asked to be."""
        self.now += span
        deadline = self.machine.deadline()
        if deadline is not None and deadline <= self.now:
            self.machine.tick(self.now)

    def restore(self, compaction: Compaction) -> None:
        """Start over from a snapshot that the machine itself, or one like it, asked to store."""
        term = self.log[compaction.index - 1].term if compaction.index <= len(self.log) else 0
        meta = SnapshotMeta(compaction.index, term, (1, 2, 3), len(compaction.data))
        self.machine.restore(Snapshot(meta, compaction.data), self.now)
        self.committed = compaction.index

    # ---- what the machine did

    def answered(self) -> list[Ticket]:
        """Tickets that are done since the last look, those after an append last."""
        box = self.machine.outbox
        tickets, box.now = box.now, []
        late, box.after_append = box.after_append, []
        return tickets + late

    def enqueued(self) -> list[ProduceTicket]:
        """Produce tickets whose place in the log became certain since the last look."""
        box = self.machine.outbox
        tickets, box.enqueued = box.enqueued, []
        return tickets

    def _append(self, entries: list[Entry]) -> None:
        self.log.extend(entries)
        find_log_watcher(self.machine).appended(entries)
