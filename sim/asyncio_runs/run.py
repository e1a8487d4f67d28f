"""One run of an asyncio program from a seed: everything around the deterministic loop.

    outcome = run(lambda loop: main(), seed=7, policy=shuffled)
    outcome.digest     # the same wherever the same program runs with the same seed

The garbage collector runs only at fixed steps, and only over objects of the run: older objects of
the process are frozen meanwhile. When the program has ended, its tasks are cancelled and its async
generators closed, in order. A run in which anything failed raises.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ottla.raft.types import Micros
from ottla.sim.asyncio_runs.engine import RunFailedError
from ottla.sim.asyncio_runs.event_loop import HOUR, DeterministicLoop
from ottla.sim.asyncio_runs.network import StreamNetwork
from ottla.sim.asyncio_runs.outside import PATCHES, Patch, patched
from ottla.sim.asyncio_runs.policies import Policy, fifo
from ottla.sim.asyncio_runs.steps import Row
from ottla.sim.chance.choices import Choices

COLLECT_EVERY = 100_000
Result = TypeVar("Result")


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """How a run ended."""

    result: Result
    """What the program returned."""
    digest: str
    """Digest of every step and every byte that arrived."""
    steps: int
    micros: Micros
    """Virtual time at the end."""
    rows: list[Row]
    """The trace, for `first_difference`; empty unless it was kept."""


def run(
    program: Callable[[DeterministicLoop], Coroutine[Any, Any, Result]],
    *,
    seed: Choices | int = 0,
    policy: Policy = fifo,
    keep_trace: bool = False,
    until: Micros = HOUR,
    patches: Sequence[Patch] = PATCHES,
    **network: int,
) -> Outcome[Result]:
    """Run `program(loop)`; `network` as for `StreamNetwork`.

    Raises what the program raises, and `RunFailedError` if something failed without a caller.
    """
    loop = DeterministicLoop(
        seed, policy=policy, keep_trace=keep_trace, until=until, collect_every=COLLECT_EVERY
    )
    with closing(loop), _collected_by_steps(), patched(loop, patches):
        loop.network = StreamNetwork(loop, **network)
        result = _to_the_end(loop, program)
    if loop.failures:
        raise RunFailedError(loop.failures)
    trace = loop.trace
    return Outcome(result, trace.digest, trace.steps, loop.now(), trace.rows or [])


def _to_the_end(
    loop: DeterministicLoop, program: Callable[[DeterministicLoop], Coroutine[Any, Any, Result]]
) -> Result:
    try:
        result: Result = loop.run_until_complete(program(loop))
    except BaseException as error:
        known = len(loop.failures)
        loop.shutdown()
        for failure in loop.failures[known:]:
            error.add_note(f"and then {failure}")
        raise
    loop.shutdown()
    # Now exceptions in reference cycles are reported.
    gc.collect()
    return result


@contextmanager
def _collected_by_steps() -> Iterator[None]:
    enabled = gc.isenabled()
    # Older garbage is frozen, too, so that none of its finalizers run among the program's steps.
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()
