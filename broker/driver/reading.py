"""`Reading`: what a node reads back from its store, so much in each turn of the event loop.

Nearly all entries are handed on where they were written. Two kinds are read back: those that a
follower has missed, and those that a replica has to apply after a restart. There may be 100,000 of
them, in each of a thousand partitions, at 1 us each from memory and 10 from a disk, and all nodes
of a process share one loop. So a node has an allowance of `READ_ENTRIES`; who wants more stands in
line, in the order of asking, and the line goes on when the loop has been around.

What is sent while somebody stands in line goes behind it: an append must not overtake the one
before it.

Entries are counted, never time: the simulator sees the same line.
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
"""Entries read back in one turn of the loop."""
APPLIED_AT_ONCE = 500
"""Entries read for one turn of a replica."""
READ_BYTES = 4 << 20
"""Bytes read for it."""


class Reading:
    """See the module's text. One per node; `later` calls when the loop has been around, `submit`
    gives a replica something to do, `broken` is told what goes wrong in a call of `later`."""

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
        """Who stands in line, and for how many entries."""

    def run(self, entries: int, call: Callable[[], None]) -> None:
        """Do what reads so many entries: now, or when its turn has come."""
        if self.waiting or self._left <= 0:
            self.waiting.append((entries, call))
            self._plan()
        else:
            self._left -= entries
            call()

    def read_back(self, hosted: HostedReplica, first: LogIndex, last: LogIndex) -> None:
        """Give a replica the entries it has to apply, or some of them: it asks again."""
        last = min(last, first + APPLIED_AT_ONCE - 1)
        self.run(last + 1 - first, partial(self._hand, hosted, first, last))

    def _hand(self, hosted: HostedReplica, first: LogIndex, last: LogIndex) -> None:
        if hosted.gone:
            return
        overtaken = hosted.replica.applied >= first  # by a snapshot, while it stood in line
        found = () if overtaken else self._store.read(hosted.group, first, last, READ_BYTES)
        self._submit(hosted, EntriesRead(found))

    def refill(self) -> None:
        """The loop has been around."""
        if not self.waiting:
            self._left = READ_ENTRIES

    def hold(self) -> None:
        """The node is paused: the line stands still until `release`."""
        self._held = True

    def release(self) -> None:
        """It goes on."""
        self._held = False
        if self.waiting:
            self._plan()

    def close(self) -> None:
        """Nobody waits any more."""
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
        except Exception as error:  # noqa: BLE001 - nobody above would notice
            self._broken(error)
        if self.waiting:
            self._plan()
