"""`Syncer`: syncs the appended turns of a node, and reports when they are durable.

A turn is added after its append, and reported, in order, once a sync covers it. At most one sync
runs at a time; turns that are added meanwhile are covered by the next one. So the number of syncs
per request falls as load rises (group commit). The flush policy says when a turn counts as durable:

| policy | a turn counts as durable |
|---|---|
| each-turn | when the sync that begins right after it has ended |
| interval | when the next sync of the interval has ended |
| off | as soon as the store has taken it; nobody waits for the sync of the interval |

With *off*, a node that crashes before that sync loses turns that counted as durable.

If a sync fails, or takes longer than `sync_stall_ms`, the outcome of every write that waits for it
is uncertain (promise-R5). The owner decides what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from ottla.broker.config import ClusterConfig, FlushPolicy
from ottla.broker.event_loop.clockwork import Clockwork, Work
from ottla.log.errors import StoreError
from ottla.log.store import LogStore, SyncJob
from ottla.raft.types import Micros

Turn = TypeVar("Turn")


class Syncer(Generic[Turn]):
    """See the module's docstring. `Turn` is any object; the owner gets it back when it is
    durable."""

    def __init__(
        self,
        store: LogStore,
        config: ClusterConfig,
        *,
        clockwork: Clockwork,
        on_durable: Callable[[Sequence[Turn]], None],
        on_failed: Callable[[StoreError], None],
    ):
        self.on_durable = on_durable
        self.on_failed = on_failed
        self.syncs = 0
        """How many syncs were begun so far."""
        self.due: Micros | None = None
        """When to call `poll` even if no turn is added (policies *interval* and *off*)."""
        self._store = store
        self._policy = config.flush
        self.each_turn = config.flush is FlushPolicy.EACH_TURN
        """Whether the policy is *each-turn*."""
        self._interval: Micros = config.flush_interval_ms * 1000
        self._stall: Micros = config.sync_stall_ms * 1000
        self._clockwork = clockwork
        self._now = clockwork.now
        self._waiting: list[Turn] = []
        self._covered: list[Turn] = []
        self._owed = False
        """Policy *off*: a turn was reported as durable and is not synced yet."""
        self._started: Micros | None = None
        self._under_way: tuple[Work, SyncJob] | None = None
        self._closed = False

    def add(self, turn: Turn) -> None:
        """Add a turn whose append the store has taken. Call `poll` once all turns of a pump are
        added."""
        self._waiting.append(turn)

    def poll(self) -> None:
        """Begin a sync if the policy requires one now, unless one is running."""
        if self._policy is FlushPolicy.OFF and self._waiting:
            turns, self._waiting = self._waiting, []
            self._owed = True
            self.on_durable(turns)
        if self._started is not None or not (self._waiting or self._owed):
            return
        if not self.each_turn:
            now = self._now()
            if self.due is None:
                self.due = now + self._interval
            if now < self.due:
                return
            self.due = None
        self._start()

    def _start(self) -> None:
        turns, self._waiting = self._waiting, []
        self._owed = False
        self.syncs += 1
        try:
            job = self._store.begin_sync()
        except StoreError as error:
            self.on_failed(error)
            return
        if job is None:
            self.on_durable(turns)
            return
        self._covered = turns
        self._started = self._now()
        running = self._clockwork.work(job.run, lambda broken: self._ended(job, broken))
        self._under_way = (running, job)

    def _ended(self, job: SyncJob, broken: str | None) -> None:
        if self._closed:
            return
        turns, self._covered = self._covered, []
        self._started = self._under_way = None
        if broken is not None:
            self.on_failed(StoreError(f"a sync ended unexpectedly: {broken}"))
            return
        try:
            self._store.finish_sync(job)
        except StoreError as error:
            self.on_failed(error)
            return
        self.on_durable(turns)
        self.poll()

    def stalled(self) -> bool:
        """Whether a sync has been running for longer than `sync_stall_ms`."""
        return self._started is not None and self._now() - self._started >= self._stall

    def close(self) -> None:
        """From now on nothing is reported as durable; the end of a running job is ignored."""
        self._closed = True

    async def drained(self) -> None:
        """After `close`: wait for a running job, so that the store may be used again."""
        if self._under_way is not None:
            await self._under_way[0].wait()
            self.finish()

    def finish(self) -> None:
        """After `close`, when the writer thread is idle: finish the job, so that the store may be
        used again. (`drained` does this, but it may have been cancelled.)"""
        if self._under_way is not None:
            _, job = self._under_way
            self._under_way = None
            with suppress(StoreError):  # the next call of the store raises it again
                self._store.finish_sync(job)
