"""What real code reads of the outside world while the deterministic loop runs it.

`patched` installs two protections and removes them after the run.

**By name.** `PATCHES` lists which name in which module is replaced: the module's own `time`,
`random`, `uuid` or `set` becomes a virtual one, at no cost for its callers. Times are the loop's,
randomness comes from the stream "programs" of the run's choices, sets iterate in the order of
insertion, and counters and memories of the process begin anew. The C module of aiokafka that stamps
records reads the clock by itself, so it gets the time as an argument.

**By refusal.** Code that still reaches the real functions is not in the table, and is refused with
the call site (`outside.py`). `tests/sim/asyncio_runs/test_outside.py` searches the sources of the
broker and of aiokafka for what that does not catch.
"""

from __future__ import annotations

import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from ottla.sim.asyncio_runs.event_loop import DeterministicLoop
from ottla.sim.chance.choices import Stream
from ottla.sim.chance.ordered_sets import OrderedFrozenSet, OrderedSet
from ottla.sim.chance.outside import GUARDED, refused, replace
from ottla.sim.world.clocks import EPOCH_MS


class Patch(NamedTuple):
    """One name that is replaced during a run."""

    module: str
    name: str
    """The name in the module; with a dot, in a class of it."""
    by: str
    """What replaces it, in words."""


def _rows(by: str, name: str, *modules: str) -> tuple[Patch, ...]:
    return tuple(Patch(module, name, by) for module in modules)


PATCHES: tuple[Patch, ...] = (
    *_rows("the loop's time", "time", "logging"),
    *_rows("drawn", "uuid", "ottla.broker.cluster.async_cluster"),
    *_rows(
        "the loop's time",
        "time",
        "aiokafka.client",
        "aiokafka.cluster",
        "aiokafka.conn",
        "aiokafka.consumer.fetcher",
        "aiokafka.consumer.group_coordinator",
        "aiokafka.consumer.subscription_state",
        "aiokafka.producer.message_accumulator",
        "aiokafka.protocol.message",
        "aiokafka.record.default_records",
        "aiokafka.record.legacy_records",
    ),
    *_rows(
        "drawn",
        "random",
        "aiokafka.client",
        "aiokafka.conn",
        "aiokafka.consumer.fetcher",
        "aiokafka.partitioner",
    ),
    *_rows("drawn", "uuid", "aiokafka.conn"),
    *_rows(
        "in order",
        "set",
        "aiokafka.client",
        "aiokafka.cluster",
        "aiokafka.consumer.consumer",
        "aiokafka.consumer.fetcher",
        "aiokafka.consumer.group_coordinator",
        "aiokafka.consumer.subscription_state",
        "aiokafka.producer.message_accumulator",
        "aiokafka.producer.sender",
        "aiokafka.producer.transaction_manager",
    ),
    *_rows("in order", "frozenset", "aiokafka.consumer.subscription_state"),
    *_rows("the loop's time", "DefaultRecordBatchBuilder", "aiokafka.producer.message_accumulator"),
    *_rows("from 0", "AIOKafkaProducer._PRODUCER_CLIENT_ID_SEQUENCE", "aiokafka.producer.producer"),
)


class VirtualTime:
    """Replaces the module `time`; unknown names are the module's own."""

    def __init__(self, loop: DeterministicLoop):
        self._now = loop.now
        self.monotonic = self.perf_counter = loop.time

    def monotonic_ns(self) -> int:
        """Nanoseconds of the loop's time."""
        return self._now() * 1000

    perf_counter_ns = monotonic_ns

    def time(self) -> float:
        """Seconds since 1970."""
        return EPOCH_MS / 1e3 + self._now() / 1e6

    def time_ns(self) -> int:
        """Nanoseconds since 1970."""
        return EPOCH_MS * 1_000_000 + self._now() * 1000

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


class VirtualRandom(random.Random):
    """Replaces the module `random`, and draws from a stream of choices."""

    def __init__(self, stream: Stream):
        self._below = stream.below
        super().__init__(0)

    def random(self) -> float:
        """As `random.random`."""
        return self._below(1 << 53) / (1 << 53)

    def getrandbits(self, k: int, /) -> int:
        """As `random.getrandbits`."""
        value = 0
        for at in range(0, k, 32):
            value |= self._below(1 << min(32, k - at)) << at
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(random, name)


class VirtualIds:
    """Replaces the module `uuid`."""

    def __init__(self, bits: Callable[[int], int]):
        self._bits = bits

    def uuid4(self) -> uuid.UUID:
        """A random id."""
        return uuid.UUID(int=self._bits(128), version=4)

    def uuid1(self, _node: int | None = None, _clock_seq: int | None = None) -> uuid.UUID:
        """A random id without machine and time."""
        return uuid.UUID(int=self._bits(128), version=1)

    def __getattr__(self, name: str) -> Any:
        return getattr(uuid, name)


def _stamping(clock: VirtualTime, builder: Any) -> Any:
    """A builder of record batches that never reads the clock itself."""

    class StampingBuilder(builder):  # type: ignore[misc] # one of two classes, neither typed
        def append(
            self, offset: int, timestamp: int | None, key: Any, value: Any, headers: Any
        ) -> Any:
            if timestamp is None:
                timestamp = clock.time_ns() // 1_000_000
            return super().append(offset, timestamp, key, value, headers)

    return StampingBuilder


def _stand_in(owner: Any, name: str, clock: VirtualTime, chance: VirtualRandom) -> Any:
    """The replacement of a name."""
    if name == "DefaultRecordBatchBuilder":
        return _stamping(clock, getattr(owner, name))
    found: dict[str, Any] = {
        "time": clock,
        "random": chance,
        "uuid": VirtualIds(chance.getrandbits),
        "set": OrderedSet,
        "frozenset": OrderedFrozenSet,
        "_PRODUCER_CLIENT_ID_SEQUENCE": 0,
    }
    return found[name]


_running: list[DeterministicLoop] = []


@contextmanager
def patched(loop: DeterministicLoop, patches: Sequence[Patch] = PATCHES) -> Iterator[None]:
    """Install both protections. Raises `RuntimeError` inside another run, because the process has
    only one outside world."""
    if _running:
        raise RuntimeError("a deterministic run is under way in this process")
    _running.append(loop)
    clock, chance = VirtualTime(loop), VirtualRandom(loop.choices.stream("programs"))
    with ExitStack() as stack:
        stack.callback(_running.clear)
        for patch in patches:
            # A module that is imported later is not patched: if it is used, it is refused.
            module = sys.modules.get(patch.module)
            if module is not None:
                within, _, name = patch.name.rpartition(".")
                owner = getattr(module, within) if within else module
                replace(stack, owner, name, _stand_in(owner, name, clock, chance))
        stack.enter_context(refused(loop.refuse, GUARDED))
        yield
