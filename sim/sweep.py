"""Sweeps: many seeds, several processes, results as Parquet that grows part by part.

Seeds are dealt out in chunks; a chunk that is done is one file, written whole or not at all. So a
sweep that was killed goes on where it stopped, with nothing lost and nothing counted twice:

    OUT/sweep.json          what is swept: first seed, count, settings; a resumed sweep must match
    OUT/part-00000000.parquet   one row per seed of a chunk, named by its first seed
    OUT/failed/SEED.tape    what replays each seed that failed

Workers are fresh processes that get seeds and give back plain tuples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from ottla.sim.run import Outcome, Verdict, run
from ottla.sim.settings import from_toml
from ottla.sim.tape_file import Case, encode

CHUNK = 25
"""Seeds in a part."""


class SweepError(Exception):
    """The folder holds another sweep, or cannot hold any."""


class SeedResult(NamedTuple):
    """What came of one seed: one row."""

    seed: int
    verdict: str
    invariant: str
    """Of the first anomaly; empty when there is none."""
    reason: str
    digest: str
    config: str
    """Name of the settings that the seed drew."""
    steps: int
    rows: int
    choices: int
    simulated_us: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is swept."""

    first: int
    seeds: int
    settings: str = ""
    """TOML: what every seed has in common."""

    def chunks(self) -> Iterator[range]:
        """Seeds, part by part."""
        end = self.first + self.seeds
        for start in range(self.first, end, CHUNK):
            yield range(start, min(start + CHUNK, end))


def result_of(seed: int, outcome: Outcome) -> SeedResult:
    """The row of a seed."""
    anomalies = outcome.anomalies
    return SeedResult(
        seed,
        outcome.verdict.value,
        anomalies[0].invariant if anomalies else "",
        outcome.reason if anomalies else "",
        outcome.digest,
        outcome.config.name,
        outcome.steps,
        len(outcome.rows),
        len(outcome.tape),
        outcome.simulated,
    )


def sweep(plan: Plan, jobs: int, out: Path | None = None) -> Iterator[SeedResult]:
    """Every seed's result, as they come; parts that `out` has already are read, not run again.

    Raises `SweepError`, and `ConfigError` for settings that make no sense.
    """
    from_toml(plan.settings)
    folder = None if out is None else Folder(out, plan)
    todo = list(plan.chunks())
    if folder is not None:
        todo = []
        for chunk in plan.chunks():
            known = folder.read(chunk)
            if known is None:
                todo.append(chunk)
            else:
                yield from known
    for chunk, results, tapes in _run_chunks(todo, plan, jobs):
        if folder is not None:
            folder.write(chunk, results, tapes)
        yield from results


_Done = tuple[range, list[SeedResult], dict[int, bytes]]


def _run_chunks(chunks: Iterable[range], plan: Plan, jobs: int) -> Iterator[_Done]:
    if jobs == 1:
        for chunk in chunks:
            yield run_chunk(chunk, plan.settings)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        running: list[Future[_Done]] = [
            pool.submit(run_chunk, chunk, plan.settings) for chunk in chunks
        ]
        try:
            for done in as_completed(running):
                yield done.result()
        finally:
            for each in running:
                each.cancel()


def run_chunk(seeds: range, settings: str) -> _Done:
    """Run seeds one after the other; with the tapes of those that failed."""
    config = from_toml(settings)
    results: list[SeedResult] = []
    tapes: dict[int, bytes] = {}
    for seed in seeds:
        outcome = run(seed, config)
        results.append(result_of(seed, outcome))
        if outcome.verdict is not Verdict.OK:
            tapes[seed] = encode(Case(outcome.config, outcome.tape))
    return seeds, results, tapes


class Folder:
    """Where a sweep keeps its results. Raises `SweepError` when it is another sweep's."""

    def __init__(self, path: Path, plan: Plan):
        self._path = path
        self._arrow, self._parquet = _pyarrow()
        told = {"first": plan.first, "seeds": plan.seeds, "settings": plan.settings}
        try:
            (path / "failed").mkdir(parents=True, exist_ok=True)
            manifest = path / "sweep.json"
            if manifest.exists():
                found = json.loads(manifest.read_text())
                if found != told:
                    raise SweepError(f"{path} holds another sweep: {found}; choose another folder")
            else:
                _write_whole(manifest, json.dumps(told).encode())
        except (OSError, ValueError) as error:
            raise SweepError(f"{path}: {error}") from None

    def _part(self, chunk: range) -> Path:
        return self._path / f"part-{chunk.start:08d}.parquet"

    def read(self, chunk: range) -> list[SeedResult] | None:
        """The results of a part; None when it was not run yet."""
        part = self._part(chunk)
        if not part.exists():
            return None
        columns = self._parquet.read_table(part).to_pydict()
        return [SeedResult(*row) for row in zip(*columns.values(), strict=True)]

    def write(self, chunk: range, results: list[SeedResult], tapes: dict[int, bytes]) -> None:
        """Keep the results of a part: the tapes first, for the part says that they are there."""
        for seed, tape in tapes.items():
            _write_whole(self._path / "failed" / f"{seed}.tape", tape)
        columns = dict(zip(SeedResult._fields, zip(*results, strict=True), strict=True))
        table = self._arrow.table({name: list(values) for name, values in columns.items()})
        part = self._part(chunk)
        unfinished = part.with_suffix(".unfinished")
        self._parquet.write_table(table, unfinished)
        unfinished.rename(part)


def _write_whole(path: Path, data: bytes) -> None:
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_bytes(data)
    unfinished.rename(path)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise SweepError(
            "results are kept as Parquet, for which pyarrow is missing: pip install 'ottla[sim]'"
        ) from None
    return pa, parquet
