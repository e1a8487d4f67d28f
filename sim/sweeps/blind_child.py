"""Runs the seeds of a blind sweep: a process with one mutant that takes seeds one by one.

`python -P -m ottla.sim.sweeps.blind_child SETTINGS LIMIT`, with the mutant's tree first on the
path. Seeds come in on standard input, one a line. A line of JSON goes out for each; one before the
first says that everything was imported. The process ends when its input ends.

A mutant may loop for ever. So each seed has a limit in CPU seconds, by a timer of the process,
which does not count waiting. If a seed needs longer, the process reports it and ends at once,
because its state can no longer be trusted. Memory has a limit too, because an endless loop may also
allocate.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ottla.sim.run import Outcome

BROKE, HUNG = "broke", "did not end"
"""What may notice besides invariants: the run itself broke, or did not end."""
MOST_MEMORY = 4 << 30
"""Bytes of address space: about twenty times what a run takes."""
_END, _SAY = os._exit, os.write  # bound here, because a run replaces the outside world


class Seed(NamedTuple):
    """The result of a seed."""

    seed: int
    noticed: list[str]
    """Invariants that do not hold, or one of the two words above; empty: nothing was noticed."""
    reason: str
    cpu_s: float


def main() -> None:
    """See the module's docstring."""
    settings, limit = sys.argv[1], float(sys.argv[2])
    out = os.dup(1)
    os.dup2(2, 1)  # a mutant may print
    _limit_memory()
    from ottla.sim.run import run
    from ottla.sim.settings.settings_file import from_toml

    config = from_toml(settings)
    _say(out, ["ready"])
    for line in sys.stdin:
        seed = int(line)
        _limit_time(out, seed, limit)
        begun = process_time()
        found = _noticed(partial(run, seed, config))
        _unlimited()
        _say(out, Seed(seed, *found, process_time() - begun))


def _noticed(run: Callable[[], Outcome]) -> tuple[list[str], str]:
    try:
        outcome = run()
    except Exception as error:  # noqa: BLE001 - raised before the run began, or after it
        return [BROKE], f"{type(error).__name__}: {error}"
    if outcome.broke:
        return [BROKE], str(outcome.broke)
    ids = dict.fromkeys(each.invariant for each in outcome.anomalies)
    return [*ids], outcome.reason if ids else ""


def _say(out: int, told: object) -> None:
    _SAY(out, (json.dumps(told) + "\n").encode())


def _limit_time(out: int, seed: int, limit: float) -> None:
    def ends(*_: object) -> None:
        _say(out, Seed(seed, [HUNG], f"did not end within {limit:.0f} s of CPU", limit))
        _END(1)

    if hasattr(signal, "setitimer"):  # not on Windows: there the parent uses its own clock
        signal.signal(signal.SIGPROF, ends)
        signal.setitimer(signal.ITIMER_PROF, limit)


def _unlimited() -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


if __name__ == "__main__":
    main()
