"""Sweeps: many seeds, several processes, results as Parquet that grows part by part.

Seeds are dealt out in chunks; a chunk that is done is one file, written whole or not at all. So a
sweep that was killed goes on where it stopped, with nothing lost and nothing counted twice:

    OUT/sweep.json          what is swept: first seed, count, settings; and by what code: a resumed
                            sweep must match
    OUT/part-00000000.parquet   one row per seed of a chunk, named by its first seed
    OUT/failed/SEED.tape    what replays each seed that failed
    OUT/canary.parquet      one row: was the canary noticed? Is it not, the sweep is void
    OUT/.lock               held while a sweep is at work there: two at once would meet

The canary (`canary.py`) is run anew whenever a sweep goes on: it stands for the code that runs now.

Workers are fresh processes that get seeds and give back plain tuples.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from ottla.sim.canary import Canary, canary
from ottla.sim.code_hash import code, commit
from ottla.sim.files import lock, write_whole
from ottla.sim.processes import go_on, processes
from ottla.sim.run import Outcome, Verdict, run
from ottla.sim.settings import from_toml
from ottla.sim.tape_file import Case, encode

CHUNK = 25
"""Seeds in a part."""
AHEAD = 4
"""Parts per process that are handed out and not taken back: a slow one holds nobody up, and a
sweep of any size keeps few results in memory."""


class SweepError(Exception):
    """The folder holds another sweep, or cannot hold any."""


class VoidSweepError(Exception):
    """The canary was not noticed: results of this sweep would mean nothing."""


class SeedResult(NamedTuple):
    """What came of one seed: one row."""

    seed: int
    verdict: str
    invariant: str
    """Of the first anomaly; empty when there is none, and when the run itself broke."""
    reason: str
    """Empty when the verdict is ok."""
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


def plan_of(folder: Path) -> Plan:
    """What was swept into a folder. Raises `SweepError`."""
    try:
        told = json.loads((folder / "sweep.json").read_text())
        return Plan(int(told["first"]), int(told["seeds"]), str(told["settings"]))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise SweepError(f"{folder} holds no sweep: {error}") from None


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
    )


def sweep(
    plan: Plan,
    jobs: int,
    out: Path | None = None,
    told: Callable[[Canary], None] | None = None,
) -> Iterator[SeedResult]:
    """Every seed's result in order; parts that `out` has already are read, not run again.

    `told` what became of the canary. Raises `VoidSweepError` before any result when it was not
    noticed, `SweepError`, and `ConfigError` for settings that make no sense.
    """
    from_toml(plan.settings)
    if out is None:
        yield from _swept(plan, jobs, None, told)
        return
    folder = Folder(out, plan)
    try:
        yield from _swept(plan, jobs, folder, told)
    finally:
        folder.close()


def _swept(
    plan: Plan, jobs: int, folder: Folder | None, told: Callable[[Canary], None] | None
) -> Iterator[SeedResult]:
    found = _canary(jobs)
    if folder is not None:
        folder.keep(found)
    if told is not None:
        told(found)
    if not found.noticed:
        raise VoidSweepError(str(found))
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
    todo = iter(chunks)
    with processes(jobs) as pool:
        running: deque[Future[_Done]] = deque()
        while True:
            for chunk in islice(todo, AHEAD * jobs - len(running)):
                running.append(pool.submit(run_chunk, chunk, plan.settings))
            if not running:
                return
            yield running.popleft().result()


def run_chunk(seeds: range, settings: str) -> _Done:
    """Run seeds one after the other; with the tapes of those that failed. A run that breaks, which
    is a bug of the simulator, is a failed seed as others are, and has no tape."""
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
    where = extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    text = " ".join(str(error).split())
    told = f"the run itself broke: {type(error).__name__}: {text}, at {place}"
    return SeedResult(seed, Verdict.FAILED.value, "", told, "", "", 0, 0, 0, 0)


class Folder:
    """Where a sweep keeps its results. Raises `SweepError` when it is another sweep's."""

    def __init__(self, path: Path, plan: Plan):
        self._path = path
        self._arrow, self._parquet = _pyarrow()
        if plan.first + plan.seeds > 1 << 63:
            raise SweepError(
                f"{path}: results hold seeds below 2**63 alone; sweep without a folder"
            )
        told = {
            "first": plan.first,
            "seeds": plan.seeds,
            "settings": plan.settings,
            "code": code(),
        }
        manifest = path / "sweep.json"
        try:
            (path / "failed").mkdir(parents=True, exist_ok=True)
            held = lock(path / ".lock")
            if held is None:
                raise SweepError(f"{path}: another sweep is at work there; wait, or end it")
            self._lock = held
            if manifest.exists():
                found = json.loads(manifest.read_text())
                _same(path, found, told)
            else:
                write_whole(manifest, json.dumps(told | {"commit": commit()}).encode())
        except OSError as error:
            raise SweepError(f"{path}: {error.strerror}") from None
        except ValueError as error:
            raise SweepError(f"{manifest}: {error}; choose another folder") from None

    def close(self) -> None:
        """Let another sweep have the folder."""
        self._lock.close()

    def _part(self, chunk: range) -> Path:
        return self._path / f"part-{chunk.start:08d}.parquet"

    def read(self, chunk: range) -> list[SeedResult] | None:
        """The results of a part; None when it was not run yet."""
        part = self._part(chunk)
        if not part.exists():
            return None
        try:
            columns = self._parquet.read_table(part).to_pydict()
        except (OSError, ValueError) as error:  # ValueError: what pyarrow calls invalid
            told = str(error).splitlines()[0]
            raise SweepError(f"{part}: {told}; without this file its seeds are run again") from None
        return [SeedResult(*row) for row in zip(*columns.values(), strict=True)]

    def write(self, chunk: range, results: list[SeedResult], tapes: dict[int, bytes]) -> None:
        """Keep the results of a part: the tapes first, for the part says that they are there."""
        for seed, tape in tapes.items():
            self._write(self._path / "failed" / f"{seed}.tape", tape)
        self._keep(self._part(chunk), SeedResult._fields, results)

    def keep(self, found: Canary) -> None:
        """Keep what became of the canary."""
        self._keep(self._path / "canary.parquet", Canary._fields, [found])

    def _keep(self, path: Path, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        table = self._arrow.table({name: list(values) for name, values in columns.items()})
        sink = self._arrow.BufferOutputStream()
        self._parquet.write_table(table, sink)
        self._write(path, sink.getvalue().to_pybytes())

    def _write(self, path: Path, data: bytes) -> None:
        try:
            write_whole(path, data)
        except OSError as error:
            raise SweepError(
                f"{path}: {error.strerror}; what is there stays, the same command goes on with it"
            ) from None


def _same(path: Path, found: dict[str, Any], told: dict[str, Any]) -> None:
    """Whether a sweep goes on with what is in its folder. The commit is for people: code that was
    changed and not committed has none. Raises `SweepError`."""
    wanted = {name: told[name] for name in told if name != "code"}
    if {name: found.get(name) for name in wanted} != wanted:
        raise SweepError(f"{path} holds another sweep: {found}; choose another folder")
    if found.get("code") != told["code"]:
        raise SweepError(
            f"{path} was swept by other code: {found.get('code', 'an older one')} at commit "
            f"{found.get('commit') or 'not known'}, this is {told['code']}; choose another folder"
        )


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise SweepError(
            "results are kept as Parquet, for which pyarrow is missing: pip install 'ottla[sim]'"
        ) from None
    return pa, parquet
