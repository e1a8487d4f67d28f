"""The folder of a study: its plan, and tables as Parquet in folders that are whole or absent.

    OUT/study.json                       the plan
    OUT/study.bill.json                  seconds that each stage has taken so far
    OUT/study.canary.json                was the canary of its sweep noticed?
    OUT/bronze/wave=00000/               events of one wave of runs
    OUT/silver/TABLE/batch=00000/        a silver table of several waves
    OUT/silver/verdicts/batch=00000/     SQL verdicts of the judged runs of several waves
    OUT/gold/TABLE/                      over everything
    OUT/report.html

**How a kill costs nothing.** A folder is made under another name beside its own (`_making-...`,
which is never read), gets its `_SUCCESS` there and is renamed. So it is there whole, or not at all.
A process that was killed left only the other name, which is removed. A process that outlives its
parent writes into a removed folder, not into the new one.

`_SUCCESS` holds a JSON object: what the folder is called, rows, bytes, its files by name with the
bytes of each, a digest of what is in them, the engine that made it and the commit of the code. A
folder with another name or other files is not whole: a lost file would be lost runs that nobody
misses, and a copied folder would be counted twice. The check reads only a name and a size per file.

For silver, verdicts and gold `_SUCCESS` also has a digest of the waves that they were made `of`. A
wave that is made again may have other rows: a run that killed its process because memory was short
may succeed the second time. Tables made of the old rows would show that run as it was. And because
batches are formed by numbers of rows, they would contain some waves twice, others never.

`kept.py` says **what of a plan is compared**. What may change is taken from the present command,
and written to `study.json`.

Runs are numbered: r = place of the seed * variants + variant. A wave is a range of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

from ottla.sim.machine.files import lock, no_folder, write_whole
from ottla.sim.studies import names, origin
from ottla.sim.studies.kept import PLAN, SEEDS, TEXT, check_same, read_object
from ottla.sim.studies.study import Study, StudyError, parse
from ottla.sim.sweeps.canary import Canary

WAVE, SMALL_WAVE = 1_000, 250
"""Most and fewest runs of a wave, unless the command says how many. A kill costs one wave; each
wave costs some files and plans of queries."""
BATCH_ROWS = 3_000_000
"""Rows of a batch: with fewer Spark plans too often, more do not fit into a small heap."""
_WAVES = 4
"""A study of medium size has about so many waves."""
SUCCESS = "_SUCCESS"
REPORT = "report.html"
_OWN = "study."
_NUMBERED = re.compile(r"(batch|wave)=(\d{5,})")
_LOCK, _BILL = "study.lock", "study.bill.json"
_CANARY = "study.canary.json"
_MAKING = "_making-"
_attempts = count()
"""Numbers attempts: a task of a failed attempt may go on writing for a while, but not where the
next one does."""
_PATTERN = frozenset("*?[]{}\\")
SCRATCH = "_scratch-"
"""Prefix of folders that last only as long as an engine."""


@dataclass(frozen=True)
class Plan:
    """What is run, and what is asked: the module's docstring says what of it may change."""

    study: str
    """The text of its file."""
    seeds: int
    first: int
    share: float
    """The share of runs that are judged in SQL although nothing is wrong with them."""
    wave: int
    """Runs of a wave."""
    batch_rows: int
    """Rows of history that are made into silver, or judged, at once; a single wave may have
    more."""
    schema: int
    versions: dict[str, str]
    commit: str | None
    """For people: a commit that only changes documentation is another one with the same code."""

    @cached_property
    def parsed(self) -> Study:
        """The study itself."""
        return parse(self.study)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return self.seeds * len(self.parsed.variants)

    def waves(self) -> tuple[range, ...]:
        """The numbers of runs, wave by wave."""
        return tuple(
            range(start, min(start + self.wave, self.runs))
            for start in range(0, self.runs, self.wave)
        )


def wave_of(runs: int) -> int:
    """How many runs a wave has in a study of `runs` runs."""
    return max(SMALL_WAVE, min(WAVE, -(-runs // _WAVES)))


@dataclass(frozen=True, slots=True)
class Made:
    """The cost of a folder."""

    rows: int
    bytes: int
    engine: str = ""
    """The engine that made it, as it describes itself; empty: not known."""
    commit: str | None = None
    """The commit of the code that made it; None: not known."""
    digest: str = ""
    """Digest of the content of its files, whatever their names are."""
    of: str = ""
    """Digest of the waves that it was made of (`made_of`); empty: not known."""


class Lake:
    """The folder of one study, for one process at a time. Raises `StudyError` if it holds another
    study, if it cannot hold one, or if another process uses it."""

    def __init__(self, root: Path, plan: Plan):
        self.root = root
        self.plan = plan
        _check_name(root)
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._check_empty()
            held = lock(root / _LOCK)
            if held is None:
                raise StudyError(f"{root}: another process uses this study; wait, or end it")
            self._lock = held
            try:
                self._check()
                for each in root.glob(f"{SCRATCH}*"):  # left by a killed process
                    shutil.rmtree(each)
            except BaseException:
                self._lock.close()  # otherwise it is held as long as the error is referenced
                raise
        except OSError as error:
            raise StudyError(f"--out {no_folder(root, error)}") from None

    def close(self) -> None:
        """Release the folder."""
        self._lock.close()

    def _check_empty(self) -> None:
        strange = any(not each.name.startswith(_OWN) for each in self.root.iterdir())
        if strange and not (self.root / PLAN).exists():
            raise StudyError(f"{self.root} is not empty and holds no study; name another")

    def _check(self) -> None:
        told, path = asdict(self.plan), self.root / PLAN
        if not path.exists():
            write_whole(path, json.dumps(told, indent=1).encode())
            return
        found = read_object(path, "is not a plan of a study; name another folder")
        check_same(self.root, found, told, self.plan.parsed)
        if found[SEEDS] < self.plan.seeds:
            self._end_before_new(found[SEEDS] * len(self.plan.parsed.variants))
        if (found[SEEDS], found[TEXT]) != (self.plan.seeds, self.plan.study):
            fresh = {**found, TEXT: self.plan.study, SEEDS: self.plan.seeds}
            write_whole(path, json.dumps(fresh, indent=1).encode())

    def _end_before_new(self, runs: int) -> None:
        """There were `runs` runs and there will be more: if the last wave was not full, it is made
        again, as it precedes the first new one."""
        wave, there = divmod(runs, self.plan.wave)
        if there:
            self.end_before(self.bronze(wave))

    def bronze(self, wave: int) -> Path:
        """The folder of the events of a wave."""
        return self.root / "bronze" / f"wave={wave:05d}"

    def silver(self, table: str, batch: int) -> Path:
        """The folder of a silver table of a batch of waves."""
        return self.root / "silver" / table / f"batch={batch:05d}"

    def verdicts(self, batch: int) -> Path:
        """The folder of the SQL verdicts of a batch of waves; they have batches of their own."""
        return self.silver(names.VERDICTS, batch)

    def end_before(self, end: Path) -> None:
        """Remove that batch or wave and those after it, because there may have been more batches
        before a wave was made again. Folders with other names are not the study's."""
        kind, _, number = end.name.partition("=")
        for folder in end.parent.glob(f"{kind}=*"):
            name = _NUMBERED.fullmatch(folder.name)
            if name is not None and int(name[2]) >= int(number) and folder.is_dir():
                shutil.rmtree(folder)

    def gold(self, table: str) -> Path:
        """The folder of a gold table."""
        return self.root / "gold" / table

    def spend(self, stage: str, seconds: float, *, once: bool = False) -> None:
        """Add the time to the bill. `once`: only if it has nothing of this stage yet, for work that
        every command repeats and that would change the report each time."""
        bill = self.spent()
        if once and stage in bill:
            return
        bill[stage] = round(bill.get(stage, 0.0) + seconds, 3)
        write_whole(self.root / _BILL, json.dumps(bill).encode())

    def spent(self) -> dict[str, float]:
        """Seconds that each stage has taken, as stored when a process ended."""
        path = self.root / _BILL
        if not path.exists():
            return {}
        wrong = "is not a bill of a study; delete it, and the time spent so far is forgotten"
        bill = read_object(path, wrong)
        for seconds in bill.values():
            if not isinstance(seconds, int | float) or not 0 <= seconds < inf:
                raise StudyError(f"{path} {wrong}")
        return bill

    def keep_canary(self, found: Canary) -> None:
        """Store the canary's result in place of the previous one."""
        write_whole(self.root / _CANARY, json.dumps(found._asdict()).encode())

    def canary(self) -> Canary | None:
        """The canary's result; None: it is not stored or cannot be read. Then it is simply run
        again."""
        try:
            found = Canary(**json.loads((self.root / _CANARY).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError, RecursionError):
            return None
        return found if [*map(type, found)] == [str, bool, str, str] else None

    @property
    def report(self) -> Path:
        """The path of the page."""
        return self.root / REPORT


def _check_name(root: Path) -> None:
    """Raises `StudyError` if an engine would take the folder's name for a pattern."""
    strange = sorted(_PATTERN.intersection("".join(root.absolute().parts[1:])))
    if strange:
        raise StudyError(f"{root}: engines read {' '.join(strange)} as a pattern; name another")


def made(folder: Path) -> Made | None:
    """The cost of a folder; None: it is missing, or not whole."""
    told = _told(folder)
    if told is None or told.get("files") != _files(folder):
        return None
    # A folder that does not name itself was made by an older version.
    return _cost(told) if told.get("called") in {None, "/".join(folder.parts[-2:])} else None


def cost(folder: Path) -> Made | None:
    """As `made`, for a folder that was checked already: its files are not."""
    told = _told(folder)
    return None if told is None else _cost(told)


def _told(folder: Path) -> dict[str, Any] | None:
    try:
        told = json.loads((folder / SUCCESS).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return told if isinstance(told, dict) and {"rows", "bytes"} <= told.keys() else None


def _cost(told: dict[str, Any]) -> Made:
    return Made(
        int(told["rows"]),
        int(told["bytes"]),
        str(told.get("engine") or ""),
        told.get("commit"),
        str(told.get("digest") or ""),
        str(told.get("of") or ""),
    )


def made_of(folders: Iterable[Path]) -> str:
    """One digest for the content of these folders, in order."""
    costs = map(cost, folders)
    return _digest("" if each is None else each.digest for each in costs)


def mark(folder: Path, of: str) -> None:
    """Store in a whole folder what it was made of. After a kill before this it is made again."""
    told = {**(_told(folder) or {}), "of": of}
    write_whole(folder / SUCCESS, json.dumps(told).encode())


def _files(folder: Path) -> dict[str, int]:
    """Its Parquet files, as engines find them, and the size of each in bytes."""
    return {part.name: part.stat().st_size for part in sorted(folder.glob("*.parquet"))}


@contextmanager
def making(folder: Path, engine: str = "") -> Iterator[Path]:
    """A folder to be filled, which replaces `folder` if that succeeds. `engine`: the engine that
    fills it, as it describes itself. Raises `StudyError` if it is empty, because there is a file
    even without rows."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    making = folder.with_name(f"{_MAKING}{folder.name}-{os.getpid()}-{next(_attempts)}")
    making.mkdir()
    yield making
    files = _files(making)
    if not files:
        raise StudyError(
            f"{folder}: its rows were written elsewhere; name a folder that driver and "
            f"executors see under the same path"
        )
    rows = sum(_rows(making / name) for name in files)
    told = {
        "called": "/".join(folder.parts[-2:]),
        "rows": rows,
        "bytes": sum(files.values()),
        "files": files,
        "digest": _digest(sorted(_content(making / name) for name in files)),
        "engine": engine,
        "commit": origin.commit_here(),
    }
    (making / SUCCESS).write_text(json.dumps(told), encoding="utf-8")
    making.rename(folder)


def _sweep(folder: Path) -> None:
    """Remove what an earlier attempt has left."""
    for left in (folder, *folder.parent.glob(f"{_MAKING}{folder.name}-*")):
        if left.exists():
            shutil.rmtree(left)


def _rows(part: Path) -> int:
    from pyarrow import parquet

    rows: int = parquet.read_metadata(part).num_rows
    return rows


def _content(part: Path) -> str:
    with part.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _digest(parts: Iterable[str]) -> str:
    return hashlib.blake2b(" ".join(parts).encode(), digest_size=16).hexdigest()
