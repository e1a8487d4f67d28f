"""What a sweep is, and the folder that keeps its results.

    OUT/sweep.json          what is swept: first seed, count, settings; and by what code: a resumed
                            sweep must match
    OUT/part-00000000.parquet   one row per seed of a chunk, named by its first seed
    OUT/failed/SEED.tape    what replays each seed that failed
    OUT/canary.parquet      one row: was the canary noticed? Is it not, the sweep is void
    OUT/.lock               held while a sweep is at work there: two at once would meet

A part is one file, written whole or not at all. The metadata of its schema names its seeds,
settings and code, because files get copied and mixed up. A part that does not fit its name and
sweep.json, or has rows of other seeds, is refused like a damaged one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ottla.sim.machine.code_hash import code, commit
from ottla.sim.machine.files import lock, no_folder, write_whole
from ottla.sim.sweeps.canary import Canary

CHUNK = 25
"""Seeds in a part."""
_KEY = b"ottla."
"""Prefix of the names of a part's metadata."""


class SweepError(Exception):
    """The folder holds another sweep, or cannot hold any."""


class SeedResult(NamedTuple):
    """The result of one seed: one row."""

    seed: int
    verdict: str
    invariant: str
    """Invariant of the first anomaly; empty: there is none, or it broke outside of its run."""
    reason: str
    """Empty if the verdict is ok."""
    digest: str
    config: str
    """The name (hash) of the settings that the seed drew."""
    steps: int
    rows: int
    choices: int
    simulated_us: int
    unjudged: str = ""
    """How many answers could not be judged, by invariant: `3 of sim-I39, 1 of sim-I41`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is swept."""

    first: int
    seeds: int
    settings: str = ""
    """TOML: the settings that all seeds have in common."""

    def chunks(self, size: int = CHUNK) -> Iterator[range]:
        """The seeds, part by part."""
        end = self.first + self.seeds
        for start in range(self.first, end, size):
            yield range(start, min(start + size, end))

    def __str__(self) -> str:
        settings = ", ".join(" ".join(line.split()) for line in self.settings.splitlines())
        with_ = settings or "all settings at their defaults"
        return f"{_seeds(range(self.first, self.first + self.seeds))} with {with_}"


class Swept(NamedTuple):
    """The content of `sweep.json`."""

    plan: Plan
    code: str
    """The code that ran the seeds; empty: an older Ottla did not say."""
    commit: str
    """For people: code with uncommitted changes has only the commit that it began from."""


def _manifest(path: Path) -> Swept:
    """Raises `OSError`, and `SweepError` for an invalid file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # endless nesting raises RecursionError
        raise SweepError(f"{path}: no JSON: {error}") from None
    match found:
        case {"first": int(first), "seeds": int(seeds), "settings": str(settings)}:
            if first >= 0 and seeds >= 1:
                named = [_in_a_line(found.get(name)) for name in ("code", "commit")]
                return Swept(Plan(first, seeds, settings), *named)
    raise SweepError(f"{path}: does not say which seeds and settings were swept")


def _in_a_line(found: object) -> str:
    """A name from a file that anybody may have written, in one line; empty: none."""
    return " ".join(found.split()) if isinstance(found, str) else ""


def _seeds(seeds: range) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def swept_into(folder: Path) -> Swept:
    """What was swept into a folder, and by which code. Raises `SweepError`."""
    try:
        return _manifest(folder / "sweep.json")
    except OSError as error:
        raise SweepError(
            f"{folder} holds no sweep: {error.strerror}; name what `ottla sim sweep --out` wrote"
        ) from None
    except SweepError as error:
        raise SweepError(f"{folder} holds no sweep: {error}") from None


class Folder:
    """Where a sweep keeps its results. Raises `SweepError` if another sweep's results are there."""

    def __init__(self, path: Path, plan: Plan):
        self._path, self._plan = path, plan
        self._arrow, self._parquet = _pyarrow()
        if plan.first + plan.seeds > 1 << 63:
            raise SweepError(
                f"{path}: results hold seeds below 2**63 alone; sweep without a folder"
            )
        try:
            (path / "failed").mkdir(parents=True, exist_ok=True)
            held = lock(path / ".lock")
            if held is None:
                raise SweepError(f"{path}: another sweep is at work there; wait, or end it")
            self._lock = held
            try:
                self._claim()
            except BaseException:
                held.close()
                raise
        except OSError as error:
            raise SweepError(no_folder(path, error)) from None

    def _claim(self) -> None:
        """Write this sweep's `sweep.json`, or check the existing one. Raises `OSError` and
        `SweepError`."""
        manifest = self._path / "sweep.json"
        parts = set(self._path.glob("part-*.parquet"))
        if manifest.exists():
            try:
                _check_same(self._path, _manifest(manifest), self._plan)
            except SweepError as error:
                raise SweepError(f"{error}; choose another folder") from None
            strange = parts.difference(map(self._part, self._plan.chunks()))
            if strange:
                raise SweepError(f"{min(strange)} is no part of this sweep; take it away")
            return
        if parts:
            raise SweepError(
                f"{self._path} has results, but no sweep.json that says of what; choose another "
                "folder"
            )
        plan = {name: getattr(self._plan, name) for name in ("first", "seeds", "settings")}
        told = plan | {"code": code(), "commit": commit()}
        write_whole(manifest, json.dumps(told).encode())

    def close(self) -> None:
        """Release the folder for other sweeps."""
        self._lock.close()

    def _part(self, chunk: range) -> Path:
        return self._path / f"part-{chunk.start:08d}.parquet"

    def _about(self, chunk: range) -> dict[str, str]:
        """The seeds, settings and code of a part, for the metadata of its schema."""
        return {"seeds": _seeds(chunk), "settings": self._plan.settings, "code": code()}

    def read(self, chunk: range) -> list[SeedResult] | None:
        """The results of a part; None: it was not run yet."""
        part = self._part(chunk)
        if not part.exists():
            return None
        try:
            with self._parquet.ParquetFile(part) as file:
                table = file.read()
            self._check_part(table, chunk)
        except (OSError, ValueError, self._arrow.ArrowException) as error:
            told = " ".join(str(error).split("\n")[:1])
            raise SweepError(f"{part}: {told}; without this file its seeds are run again") from None
        return [SeedResult(*row.values()) for row in table.to_pylist()]

    def _check_part(self, table: Any, chunk: range) -> None:
        """Raises `ValueError` for a part of another sweep."""
        about = {_KEY + name.encode(): told.encode() for name, told in self._about(chunk).items()}
        found = table.schema.metadata or {}
        if not about.keys() <= found.keys():
            raise ValueError("does not say what it is of")
        other = [key.removeprefix(_KEY).decode() for key in about if found[key] != about[key]]
        if other:
            raise ValueError(f"is of other {' and '.join(other)}")
        if table.column_names != list(SeedResult._fields):
            raise ValueError("has other columns")
        if table["seed"].to_pylist() != list(chunk):
            raise ValueError(f"has rows of other seeds than {_seeds(chunk)}")

    def write(self, chunk: range, results: list[SeedResult], tapes: dict[int, bytes]) -> None:
        """Keep the results of a part: tapes first, because the part says that they exist."""
        for seed, tape in tapes.items():
            self._write(self._path / "failed" / f"{seed}.tape", tape)
        about = {_KEY + name.encode(): told for name, told in self._about(chunk).items()}
        self._keep(self._part(chunk), self._table(SeedResult._fields, results, about))

    def keep(self, found: Canary) -> None:
        """Keep the canary's result."""
        self._keep(self._path / "canary.parquet", self._table(Canary._fields, [found], {}))

    def _table(
        self, names: Sequence[str], rows: Sequence[tuple[Any, ...]], about: dict[bytes, str]
    ) -> Any:
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        lists = {name: list(values) for name, values in columns.items()}
        return self._arrow.table(lists, metadata=about)

    def _keep(self, path: Path, table: Any) -> None:
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


def _check_same(path: Path, found: Swept, plan: Plan) -> None:
    """Raises `SweepError` if a sweep cannot go on with the content of its folder."""
    if found.plan != plan:
        raise SweepError(f"{path} holds another sweep: {found.plan}; this is {plan}")
    if found.code != code():
        raise SweepError(
            f"{path} was swept by other code: {found.code or 'an older one'} at commit "
            f"{found.commit or 'not known'}, this is {code()}"
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
