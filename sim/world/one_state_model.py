"""The reference model for profiles in which a producer has one state for all its epochs.

It is written after Redpanda's `producer_state`, not after `ottla.idempotency`: per producer an
epoch and a list of finished batches, which only applied entries extend. What is in flight is read
off the leader's log. A request of a newer epoch clears the list, and its producer is known from its
first request on. So the state belongs to one replica, and each life has a model of its own, which
hears of every entry and of every request that its leader judges (RP-ONE-STATE).

`StateReplay` is what applied entries alone make of it, the same on every replica. `Remnant` is what
is left of that on a replica that began with a snapshot (RP-RAFT-SNAPSHOT).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.raft.types import Entry, EntryKind, LogIndex, NodeId, Term
from ottla.sim.world.reference_model import (
    ACCEPT,
    DUPLICATE,
    GAP,
    PARK,
    SEQUENCES,
    WINDOW,
    Ahead,
    Opinion,
    Replay,
    Stored,
    forgotten_by,
    stored,
)

BACKWARDS = "backwards"


class Batch(NamedTuple):
    """A batch by its range."""

    epoch: int
    first: int
    last: int
    off: int = -1


class State:
    """What a replica knows of one producer."""

    def __init__(self, epoch: int, *, again: bool = False):
        self.epoch = epoch
        self.again = again
        """It was met again after the decision to forget it, which is not applied yet."""
        self.finished: list[Batch] = []
        self.cleared: list[tuple[int, int, int]] = []
        """Batches that were in flight when a newer epoch came: they are so no longer."""


class OneStateModel:
    """See the module's docstring. `wraps`: whether a batch may lie across the wrap."""

    def __init__(self, max_producers: int, *, wraps: bool):
        self._wraps = wraps
        self._most = max_producers
        self._states: dict[int, State] = {}
        self._log: list[tuple[LogIndex, Term, int, Stored]] = []
        """Entries of producers that are not applied yet: index, term, producer."""
        self._term: Term = 0
        self._applied: LogIndex = 0

    # ---- the log

    def appended(self, entries: Iterable[Entry]) -> None:
        """As `LogModel.appended`."""
        for entry in entries:
            self._term = entry.term
            for producer_id, item in _of_producers(entry):
                self._log.append((entry.index, entry.term, producer_id, item))

    def truncated(self, first: LogIndex) -> None:
        """As `LogModel.truncated`."""
        while self._log and self._log[-1][0] >= first:
            self._log.pop()

    def restored(self, remnant: Remnant) -> None:
        """The replica begins with a snapshot; `remnant` is what it keeps of that."""
        self._log.clear()
        self._states = {}
        self._applied = remnant.applied
        for producer_id, (epoch, _, window) in remnant.producers.items():
            state = self._states[producer_id] = State(epoch)
            state.finished = [Batch(epoch, first, last, off) for first, last, off, _ in window]

    def applied(self, entries: Sequence[Entry]) -> None:
        """These entries are committed, and the replica applies them."""
        for entry in entries:
            if entry.index > self._applied:
                self._applied = entry.index
                for producer_id, item in _of_producers(entry):
                    self._apply(producer_id, item)
        last = entries[-1].index
        while self._log and self._log[0][0] <= last:
            self._log.pop(0)

    def _apply(self, producer_id: int, item: Stored) -> None:
        state = self._states.get(producer_id)
        if item.forgets:
            if state is not None and not state.again:
                del self._states[producer_id]
            elif state is not None:
                state.again = False
            return
        if state is None:
            state = self._states[producer_id] = State(item.epoch)
        if item.epoch > state.epoch:
            state.epoch, state.finished = item.epoch, []
        batch = Batch(item.epoch, item.first, item.last, item.off)
        state.finished = [*state.finished, batch][-WINDOW:]
        if batch[:3] in state.cleared:
            state.cleared.remove(batch[:3])

    # ---- opinions

    def opinion(
        self, identity: tuple[int, int, int, int], committed: LogIndex, ahead: Sequence[Ahead]
    ) -> Opinion | None:
        """As `LogModel.opinion`; None also near the limit of producers. From now on the producer is
        known."""
        producer_id = identity[0]
        line = [
            item for _, term, whose, item in self._log if (whose, term) == (producer_id, self._term)
        ]
        line += [item for whose, item in ahead if whose == producer_id]
        forgets = next((n for n, item in enumerate(reversed(line)) if item.forgets), None)
        state = self._states.get(producer_id)
        if forgets is not None:
            line = line[len(line) - forgets :]
            state = state if state is not None and state.again else None
        said = self._judged(state, line, identity)
        if len(self._states) + len(ahead) >= self._most:
            said = None
        self._meet(state, line, identity, again=forgets is not None)
        return said

    def _judged(
        self, state: State | None, line: Sequence[Stored], identity: tuple[int, int, int, int]
    ) -> Opinion | None:
        _, epoch, first, last = identity
        if last < first and not self._wraps:
            return Opinion(BACKWARDS)
        if not (0 <= first < SEQUENCES and 0 <= last < SEQUENCES):
            return Opinion(GAP)
        if state is None:
            return Opinion(ACCEPT)
        if epoch > state.epoch:
            return Opinion(ACCEPT if first == 0 else GAP)
        done = next((each for each in state.finished if each[1:3] == (first, last)), None)
        if done is not None:
            return Opinion(DUPLICATE, done.off)
        flying = _flying(state, line)
        if any(each[1:] == (first, last) for each in flying):
            return Opinion(PARK)
        ends = [*(each.last for each in state.finished), *(each[2] for each in flying)]
        follows = first == ((ends[-1] + 1) % SEQUENCES if ends else 0)
        return Opinion(ACCEPT if follows else GAP)

    def _meet(
        self,
        state: State | None,
        line: Sequence[Stored],
        identity: tuple[int, int, int, int],
        *,
        again: bool,
    ) -> None:
        producer_id, epoch, _, _ = identity
        if state is not None and epoch <= state.epoch:
            return
        made = self._states[producer_id] = State(epoch, again=again)
        made.cleared = [(each.epoch, each.first, each.last) for each in line]


def _flying(state: State, line: Sequence[Stored]) -> list[tuple[int, int, int]]:
    """What is in flight and was not cleared."""
    cleared = list(state.cleared)
    flying = []
    for each in line:
        batch = each.epoch, each.first, each.last
        if batch in cleared:
            cleared.remove(batch)
        else:
            flying.append(batch)
    return flying


def _of_producers(entry: Entry) -> list[Ahead]:
    """The batch of a producer in an entry, or the producers that it forgets."""
    payload: Any = entry.payload
    if entry.kind is EntryKind.COMMAND:
        return [(each, Stored(entry.index)) for each in forgotten_by(payload)]
    if entry.kind is EntryKind.BATCH and payload.producer_id >= 0:
        return [(payload.producer_id, stored(payload, entry.index))]
    return []


class StateReplay(Replay):
    """As `Replay`, but an older epoch extends the state of the current one."""

    def _window(self, known: tuple[int | None, list[Any]], epoch: int) -> tuple[int, list[Any]]:
        current, window = known
        if current is None or epoch > current:
            return epoch, []
        return current, window


class Remnant(StateReplay):
    """What is left after a snapshot that `body` describes: nothing if another node took it than
    `node`, else batches that end at its log start or later."""

    def __init__(self, body: Mapping[str, Any], index: LogIndex, node: NodeId, table: Any):
        super().__init__()
        self.applied = index
        if body["taken_by"] != node:
            return
        ahead, forgot, producers = table[1:]
        self.applied = max(index, ahead)
        for producer_id, epoch, tail in forgot[1] if forgot else ():
            self._forgotten[producer_id] = epoch, tail
        start = body["log_start_offset"]
        for producer_id, epoch, last_index, window in producers:
            kept = [
                list(each) for each in window if each[2] + (each[1] - each[0]) % SEQUENCES >= start
            ]
            if kept:
                self.producers[producer_id] = [epoch, last_index, kept]
