"""Abstract states: the state of a cluster, so coarse that a run comes through some hundred of them.

Numbers are dropped and relations kept: not which node leads in which term, but whether any does,
how many are up, how far logs and high watermarks differ. Two moments with equal relations are one
state. How many states a sweep has reached, and how many each new seed still adds, says whether more
seeds of the same kind are worth their time (SIM-GOALS).

| part | values |
|---|---|
| live | nodes that are up and not frozen |
| leads | 0 no node leads, 1 one, 2 several believe that they lead |
| terms | in how many terms the live nodes are, 0 to 3 |
| tails | nodes with entries that no node knows committed, 0 to 3 |
| apart | at how many places logs end, 0 to 3 |
| behind | 0 high watermarks of live nodes are equal, 1 one is behind, 2 more are |
| flight | batches sent that clients wait for: 0 none, 1 one, 2 two to four, 3 more |
| newest | the last event that changes a cluster |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ottla.sim.history.history import Event

State: TypeAlias = tuple[int | str, ...]
Row: TypeAlias = Any
_NEWS = {
    "leader",
    "stepdown",
    "truncate",
    "crash",
    "start",
    "pause",
    "resume",
    "snapshot",
    "expire",
    "error",
    "ok",
}
_HEARD = ("ok", "error", "fail", "info")
"""After these rows a client no longer waits, though it may send the batch again."""


class _Replica:
    """One replica, as rows describe it."""

    __slots__ = ("commit", "end", "leads", "term")

    def __init__(self) -> None:
        self.term = self.commit = self.leads = 0
        self.end: tuple[int, int | None] = (0, None)
        """Log index and chain of its last entry."""


class Watch:
    """Follows one partition, and collects every state that it comes through."""

    def __init__(self, partition: int):
        self.seen: dict[State, None] = {}
        self._partition = partition
        self._replicas: dict[int, _Replica] = {}
        self._away: set[int] = set()
        self._flight: dict[int, None] = {}
        """Batches without an answer yet, by the number of their first record, which every row about
        them has, also without sequences."""
        self._committed = 0
        self._moves: dict[str, Callable[[Row], None]] = {
            "term": self._term,
            "leader": self._leader,
            "stepdown": self._stepdown,
            "append": self._append,
            "truncate": self._truncate,
            "commit": self._commit,
            "crash": self._crash,
            "start": self._start,
            "pause": lambda row: self._away.add(row.node),
            "resume": lambda row: self._away.discard(row.node),
            "send": lambda row: self._flight.update({row.op: None}),
            **dict.fromkeys(_HEARD, lambda row: self._flight.pop(row.op, None)),
        }

    def see(self, row: Row) -> None:
        """One row of the history."""
        if row.partition is not None and row.partition != self._partition:
            return
        move = self._moves.get(row.kind)
        if move is not None:
            move(row)
        if row.kind in _NEWS:
            self.seen[self._state(row.kind)] = None

    def _replica(self, row: Row) -> _Replica:
        found = self._replicas.get(row.node)
        if found is None:
            found = self._replicas[row.node] = _Replica()
        return found

    def _term(self, row: Row) -> None:
        self._replica(row).term = row.term

    def _leader(self, row: Row) -> None:
        self._replica(row).leads = self._replica(row).term = row.term

    def _stepdown(self, row: Row) -> None:
        self._replica(row).leads = 0

    def _append(self, row: Row) -> None:
        self._replica(row).end = (row.log_index, row.chain)

    def _truncate(self, row: Row) -> None:
        self._replica(row).end = (row.log_index - 1, None)

    def _commit(self, row: Row) -> None:
        self._replica(row).commit = row.log_index
        self._committed = max(self._committed, row.log_index)

    def _crash(self, row: Row) -> None:
        replica = self._replica(row)
        replica.leads, replica.end = 0, (row.log_index, None)
        self._away.add(row.node)

    def _start(self, row: Row) -> None:
        self._away.discard(row.node)
        replica = self._replica(row)
        replica.term, replica.commit = row.term, 0

    def _state(self, news: str) -> State:
        replicas = list(self._replicas.values())
        live = [each for node, each in self._replicas.items() if node not in self._away]
        ends = {each.end[0] for each in replicas}
        commits = [each.commit for each in live]
        most = max(commits, default=0)
        return (
            len(live),
            min(sum(each.leads > 0 for each in replicas), 2),
            min(len({each.term for each in live}), 3),
            min(sum(each.end[0] > self._committed for each in replicas), 3),
            min(len(ends), 3),
            min(sum(each < most for each in commits), 2),
            _bucket(len(self._flight)),
            news,
        )


def _bucket(count: int) -> int:
    return sum(count >= least for least in (1, 2, 5))


def states_of(rows: Sequence[Event], partitions: int) -> list[State]:
    """Every state of every partition of a run, once, in the order in which they came."""
    seen: dict[State, None] = {}
    for partition in range(partitions):
        watch = Watch(partition)
        for row in rows:
            watch.see(row)
        seen.update(watch.seen)
    return list(seen)
