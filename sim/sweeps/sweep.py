"""Sweeps: many seeds, several processes, results as Parquet files that are added part by part.

Seeds are distributed in chunks. A finished chunk is one file, written whole or not at all
(`sweep_folder.py`). So a sweep that was killed goes on where it stopped, without losing or counting
anything twice. The canary (`canary.py`) is run again whenever a sweep goes on, because it is about
the code that runs now.

Workers are fresh processes that get seeds and return plain tuples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ottla.sim.ending.breaking import itself_broke
from ottla.sim.machine.processes import as_they_end, go_on, processes
from ottla.sim.run import Outcome, Verdict, run
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.sweeps.canary import Canary, canary
from ottla.sim.sweeps.sweep_folder import CHUNK, Folder, Plan, SeedResult
from ottla.sim.sweeps.tape_file import Case, encode

AHEAD = 4
"""Parts per process that are handed out and not taken back: a slow one does not hold up the others,
and a sweep of any size keeps few results in memory."""


class VoidSweepError(Exception):
    """The canary was not noticed: results of this sweep would mean nothing."""


def result_of(seed: int, outcome: Outcome) -> SeedResult:
    """The row of a seed."""
    anomalies = outcome.anomalies
    return SeedResult(
        seed,
        outcome.verdict.value,
        anomalies[0].invariant if anomalies else "",
        "" if outcome.verdict is Verdict.OK else outcome.reason,
        outcome.digest,
        outcome.config.name,
        outcome.steps,
        len(outcome.rows),
        len(outcome.tape),
        outcome.simulated,
        _by_invariant(outcome.unjudged),
    )


def _by_invariant(unjudged: Mapping[str, int]) -> str:
    counted = Counter[str]()
    for what, count in unjudged.items():
        counted[what.split()[0]] += count
    return ", ".join(f"{count} of {name}" for name, count in sorted(counted.items()))


def sweep(
    plan: Plan,
    jobs: int,
    out: Path | None = None,
    told: Callable[[Canary], None] = lambda _: None,
    *,
    begins: Callable[[int], None] = lambda _: None,
) -> Iterator[SeedResult]:
    """Every seed's result: first those that `out` has already, which are not run again, then the
    others. With one job they come in order; with more, part by part as parts end, and in order
    within a part.

    `told` is called with the canary's result. `begins` is called before the first new seed, with
    the number of results that existed already. Raises `VoidSweepError` before any result if the
    canary was not noticed, `SweepError`, and `ConfigError` for impossible settings.
    """
    from_toml(plan.settings)
    if out is None:
        yield from _swept(plan, jobs, None, told, begins)
        return
    folder = Folder(out, plan)
    try:
        yield from _swept(plan, jobs, folder, told, begins)
    finally:
        folder.close()


def _swept(
    plan: Plan,
    jobs: int,
    folder: Folder | None,
    told: Callable[[Canary], None],
    begins: Callable[[int], None],
) -> Iterator[SeedResult]:
    found = _canary(jobs)
    if folder is not None:
        folder.keep(found)
    told(found)
    if not found.noticed:
        raise VoidSweepError(str(found))
    todo = []
    there = 0
    # Parts in a folder always have one size, so that any later sweep can go on; without a folder
    # all processes get work.
    size = CHUNK if folder is not None else max(1, min(CHUNK, plan.seeds // jobs))
    for chunk in plan.chunks(size):
        known = None if folder is None else folder.read(chunk)
        if known is None:
            todo.append(chunk)
        else:
            there += len(known)
            yield from known
    begins(there)
    for chunk, results, tapes in _run_chunks(todo, plan, jobs):
        if folder is not None:
            folder.write(chunk, results, tapes)
        yield from results


def _canary(jobs: int) -> Canary:
    """The canary, in a process of the kind that runs the seeds."""
    if jobs == 1:
        return canary()
    with processes(1) as pool:
        return pool.submit(canary).result()


_Done = tuple[range, list[SeedResult], dict[int, bytes]]


def _run_chunks(chunks: Iterable[range], plan: Plan, jobs: int) -> Iterator[_Done]:
    if jobs == 1:
        for chunk in chunks:
            yield run_chunk(chunk, plan.settings)
        return
    with processes(jobs) as pool:
        asked = (pool.submit(run_chunk, chunk, plan.settings) for chunk in chunks)
        for done in as_they_end(asked, AHEAD * jobs):
            yield done.result()


def run_chunk(seeds: range, settings: str) -> _Done:
    """Run seeds one after the other; also returns the tapes of those that failed. A seed that
    breaks before its run has begun, or after it, counts as failed and has no tape."""
    config = from_toml(settings)
    results: list[SeedResult] = []
    tapes: dict[int, bytes] = {}
    for seed in seeds:
        go_on()
        try:
            outcome = run(seed, config)
        except Exception as error:  # noqa: BLE001 - one broken run must not cost the others
            results.append(_broke(seed, error))
            continue
        results.append(result_of(seed, outcome))
        if outcome.verdict is Verdict.FAILED:
            tapes[seed] = encode(Case(outcome.config, outcome.tape))
    return seeds, results, tapes


def _broke(seed: int, error: Exception) -> SeedResult:
    """The row of a seed whose run ended with an exception that is no verdict."""
    return SeedResult(seed, Verdict.FAILED.value, "", itself_broke(error), "", "", 0, 0, 0, 0)
