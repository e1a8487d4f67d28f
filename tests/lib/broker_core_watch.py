"""What must hold in a `broker_core_world.World`, checked as it happens and at the end.

Each check names what it defends: promise-R2 to R5 (one order, no duplicate, no gap), promise-K3
(high watermark), figure 3 (one leader per term), docs/decisions/0011 (producer tables by the log
alone).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import msgpack

from ottla.idempotency.decisions import Accept
from ottla.idempotency.table import ProducerTable
from ottla.log.record_batch import identity
from ottla.log.types import Offset, RecordBatch
from ottla.raft.roles import Role
from ottla.raft.types import Entry, EntryKind, LogIndex, NodeId, Term

if TYPE_CHECKING:
    from broker_core_world import Life

NO_LIMIT = 10**6
"""Producers that a replay may know."""


class Watch:
    """Keeps what every node did, and compares."""

    def __init__(self) -> None:
        self.log: dict[LogIndex, Entry] = {}
        """Every entry that anybody ever applied."""
        self.leaders: dict[Term, NodeId] = {}
        self.digests: dict[LogIndex, int] = {}
        self.high: dict[Life, Offset] = {}
        self.exposed: dict[Term, Offset] = {}
        """Highest watermark that a leader of that term showed to readers."""
        self.applied_by: dict[Life, LogIndex] = {}

    def on_apply(self, life: Life, entries: Sequence[Entry]) -> None:
        """Raft's state machine safety: nobody applies another entry at the same index."""
        for entry in entries:
            known = self.log.setdefault(entry.index, entry)
            assert (known.term, known.kind, known.payload) == (
                entry.term,
                entry.kind,
                entry.payload,
            ), f"entry {entry.index}: node {life.node} applies {entry}, another applied {known}"

    def on_turn(self, life: Life) -> None:
        """After each turn."""
        state, now = life.machine.state, life.world.kernel.now
        before = self.high.get(life, 0)
        assert state.high_watermark >= before, f"{state.high_watermark} after {before}"
        self.high[life] = state.high_watermark
        if life.replica.core.role is Role.LEADER:
            term = life.replica.core.term
            other = self.leaders.setdefault(term, life.node)
            assert other == life.node, f"{life.node} and {other} lead term {term}"
        if state.leadership.synced:
            self._exposed(state.leadership.term, state.high_watermark)
        if self.applied_by.get(life) != state.applied:
            self.applied_by[life] = state.applied
            self._compare_table(life)
        for ticket, deadline in life.open.items():
            assert deadline >= now, f"node {life.node} at {now}: {ticket} was due at {deadline}"

    def _exposed(self, term: Term, high: Offset) -> None:
        if term not in self.exposed:
            earlier = max((o for t, o in self.exposed.items() if t < term), default=0)
            assert high >= earlier, f"term {term} serves from {high}, {earlier} was seen"
            self.exposed[term] = high
        self.exposed[term] = max(self.exposed[term], high)

    def _compare_table(self, life: Life) -> None:
        """Equal on all replicas at the same applied index (a snapshot's table may be ahead)."""
        table, applied = life.machine.table, life.machine.applied
        if table.applied_index <= applied:
            digest = table.digest()
            known = self.digests.setdefault(applied, digest)
            assert known == digest, f"node {life.node}: another producer table at {applied}"

    # ---- at the end

    def batches(self) -> list[RecordBatch]:
        """The committed log, as consumers may see it."""
        last = max(self.log, default=0)
        assert sorted(self.log) == list(range(1, last + 1)), "holes in what was applied"
        entries = (self.log[index] for index in range(1, last + 1))
        return [cast(RecordBatch, e.payload) for e in entries if e.kind is EntryKind.BATCH]

    def check_log(self) -> None:
        """Offsets without holes; each producer's epochs start at 0 and have neither gap nor
        repetition."""
        offset = 0
        tails: dict[int, tuple[int, int]] = {}
        for batch in self.batches():
            assert batch.base_offset == offset, f"offset {batch.base_offset} after {offset}"
            offset += batch.last_offset_delta + 1
            who = identity(batch)
            if who is None:
                continue
            epoch, last = tails.get(who.producer_id, (-1, -1))
            assert who.epoch >= epoch, f"{who} after epoch {epoch}"
            expected = last + 1 if who.epoch == epoch else 0
            assert who.first_sequence == expected, f"{who} where sequence {expected} belongs"
            tails[who.producer_id] = (who.epoch, who.last_sequence)

    def check_tables(self, lives: Sequence[Life]) -> None:
        """All replicas equal each other and a replay of the log. In the replay, the rules accept
        every batch, one after the other. So the log is as if only one request at a time had been
        judged and stored, whoever led, and however many requests were in flight."""
        replayed = ProducerTable(lives[0].machine.table.rulebook, NO_LIMIT)
        last = max(self.log)
        for index in range(1, last + 1):
            entry = self.log[index]
            if entry.kind is EntryKind.BATCH:
                self._replay(replayed, entry)
            elif entry.kind is EntryKind.COMMAND:
                name, argument = msgpack.unpackb(cast(bytes, entry.payload))
                if name == "expire":
                    replayed.apply_expire(argument, index=index)
        for life in lives:
            assert life.machine.applied == last, f"{life.machine.applied} of {last}"
            assert life.machine.table.digest() == replayed.digest(), f"node {life.node}"

    def _replay(self, table: ProducerTable, entry: Entry) -> None:
        batch = cast(RecordBatch, entry.payload)
        who = identity(batch)
        if who is not None:
            decision = table.decide(who, entry.term)
            assert isinstance(decision, Accept), f"entry {entry.index}, {who}: {decision}"
            table.apply(
                who, batch.base_offset, batch.max_timestamp, index=entry.index, term=entry.term
            )

    def at_offset(self, offset: Offset) -> Any:
        """The committed batch that begins there."""
        return next((each for each in self.batches() if each.base_offset == offset), None)
