"""`Syncer`: when a node's appended turns become durable, and what happens then.

Turns come in after their append and leave, in order, once a sync covers them. At most one sync is
under way; what arrives meanwhile is covered by the next one, so the number of syncs per request
falls as load rises (group commit). The flush policy decides what counts:

| policy | a turn counts as durable |
|---|---|
| each-turn | when the sync that was started right after it has ended |
| interval | when the next sync of the interval has ended |
| off | as soon as the store has taken it; the interval's sync follows, and nobody waits for it |

With *off*, a node that dies between the two loses what it has called durable.

A sync that fails, or takes longer than `sync_stall_ms`, makes the outcome of every write behind it
uncertain (promise-R5); the owner is told and decides.
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
    """See the module's text. `Turn` is whatever the owner wants back when it is durable."""

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
        """Syncs asked of the store so far."""
        self.due: Micros | None = None
        """When `poll` should be called though nothing happens (policies *interval* and *off*)."""
        self._store = store
        self._policy = config.flush
        self.each_turn = config.flush is FlushPolicy.EACH_TURN
        """A turn counts as durable with the sync behind it."""
        self._interval: Micros = config.flush_interval_ms * 1000
        self._stall: Micros = config.sync_stall_ms * 1000
        self._clockwork = clockwork
        self._now = clockwork.now
        self._waiting: list[Turn] = []
        self._covered: list[Turn] = []
        self._owed = False
        """Policy *off*: something was called durable that is not."""
        self._started: Micros | None = None
        self._under_way: tuple[Work, SyncJob] | None = None
        self._closed = False

    def add(self, turn: Turn) -> None:
        """The store has taken this turn's append; `poll` once all turns of a pump are in."""
        self._waiting.append(turn)

    def poll(self) -> None:
        """Start the sync that the policy asks for, unless one is under way."""
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
        """A sync has been under way for longer than any healthy disk takes."""
        return self._started is not None and self._now() - self._started >= self._stall

    def close(self) -> None:
        """Nothing is durable from here on; a job under way ends unheard."""
        self._closed = True

    async def drained(self) -> None:
        """After `close`: wait for a job under way, so that the store may be used again."""
        if self._under_way is not None:
            await self._under_way[0].wait()
            self.finish()

    def finish(self) -> None:
        """After `close`: the writer is idle, also where nobody waited for it (`drained` may have
        been cancelled); the store may be used again."""
        if self._under_way is not None:
            _, job = self._under_way
            self._under_way = None
            with suppress(StoreError):  # Who closes the store next will hear of it.
                self._store.finish_sync(job)
