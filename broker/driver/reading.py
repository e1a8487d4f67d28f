"""`Reading`: limits how many entries a node reads back from its store per iteration of the loop.

Nearly all entries are passed on from memory when they are written. Two kinds are read back: those
that a follower has missed, and those that a replica must apply after a restart. Each of a thousand
partitions may have 100,000 of them; one costs 1 us from memory and 10 us from a disk, and all nodes
of a process share one loop. So a node may read `READ_ENTRIES` per iteration. Further reads wait in
a line, in order, for the next iterations.

While reads wait in the line, messages with entries wait behind them, because an append must not
overtake an earlier one.

Entries are counted, never time, so that the simulator has the same line in every run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.turn.effects import EntriesRead
from ottla.log.store import LogStore
from ottla.raft.types import LogIndex

READ_ENTRIES = 2_000
"""Entries read back in one iteration of the loop."""
APPLIED_AT_ONCE = 500
"""Entries read back for one turn of a replica, at most."""
READ_BYTES = 4 << 20
"""Bytes read back for one turn of a replica, at most."""


class Reading:
    """See the module's docstring. One per node. `later` calls a function in the next iteration of
    the loop; `submit` gives a replica its entries; `broken` is called with an exception that a
    waiting read raises."""

    def __init__(
        self,
        store: LogStore,
        *,
        later: Callable[[Callable[[], None]], object],
        submit: Callable[[HostedReplica, EntriesRead], None],
        broken: Callable[[Exception], None],
    ):
        self._store = store
        self._later = later
        self._submit = submit
        self._broken = broken
        self._left = READ_ENTRIES
        self._planned = False
        self._held = False
        self.waiting: deque[tuple[int, Callable[[], None]]] = deque()
        """The line: the number of entries and the function that reads them."""

    def run(self, entries: int, call: Callable[[], None]) -> None:
        """Call `call`, which reads so many entries: now, or when the line has reached it."""
        if self.waiting or self._left <= 0:
            self.waiting.append((entries, call))
            self._plan()
        else:
            self._left -= entries
            call()

    def read_back(self, hosted: HostedReplica, first: LogIndex, last: LogIndex) -> None:
        """Give a replica the entries that it must apply, or the first of them; it will ask for the
        rest."""
        last = min(last, first + APPLIED_AT_ONCE - 1)
        self.run(last + 1 - first, partial(self._hand, hosted, first, last))

    def _hand(self, hosted: HostedReplica, first: LogIndex, last: LogIndex) -> None:
        if hosted.gone:
            return
        overtaken = hosted.replica.applied >= first  # a snapshot replaced them meanwhile
        found = () if overtaken else self._store.read(hosted.group, first, last, READ_BYTES)
        self._submit(hosted, EntriesRead(found))

    def refill(self) -> None:
        """A new iteration of the loop: allow `READ_ENTRIES` again."""
        if not self.waiting:
            self._left = READ_ENTRIES

    def hold(self) -> None:
        """The node is paused: nothing in the line is read until `release`."""
        self._held = True

    def release(self) -> None:
        """The node goes on: continue with the line."""
        self._held = False
        if self.waiting:
            self._plan()

    def close(self) -> None:
        """Drop the line."""
        self.waiting.clear()

    def _plan(self) -> None:
        if not self._planned and not self._held:
            self._planned = True
            self._later(self._go_on)

    def _go_on(self) -> None:
        self._planned = False
        if self._held:
            return
        self._left = READ_ENTRIES
        try:
            while self.waiting and self._left > 0:
                entries, call = self.waiting.popleft()
                self._left -= entries
                call()
        except Exception as error:  # noqa: BLE001 - the loop would only log it
            self._broken(error)
        if self.waiting:
            self._plan()
