"""The folder of a study: its plan, and tables as Parquet in folders that are whole or absent.

    OUT/study.json                       the plan
    OUT/study.bill.json                  seconds that each stage has taken so far
    OUT/study.canary.json                was the canary of its sweep noticed?
    OUT/bronze/wave=00000/               events of one wave of runs
    OUT/silver/TABLE/batch=00000/        a silver table of several waves
    OUT/silver/verdicts/batch=00000/     SQL verdicts of the judged runs of several waves
    OUT/gold/TABLE/                      over everything
    OUT/report.html

**How a kill costs nothing.** A folder is made under another name beside its own (`_making-...`, in
which nobody looks for data), gets its `_SUCCESS` there and is renamed: so it is there whole, or not
at all. Whoever made it and was killed left only the other name, which is removed. A process that
outlives its parent writes into a folder that is gone, and not into the one made anew.

`_SUCCESS` holds a JSON object: what the folder is called, rows, bytes, its files by name with the
bytes of each, a digest of what is in them, the engine that made it and the commit of the code. A
folder whose name or files are others is not whole: one that was lost would be runs that nobody
misses, one that is there twice would be counted twice. To look costs a name and a size per file.

Silver, verdicts and gold say there, too, which waves they were made `of`, as a digest of theirs. A
wave that is made again may have other rows: a run that its process died of for want of memory lives
the second time. What was made of the rows before would tell of that run as it was; and as batches
are told by rows, of some waves twice, of others never.

**What a plan is compared by** is said in `kept.py`. What may be another is drawn, or run, as it is
asked for now, and `study.json` has it then.

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
"""Runs of a wave, at most and at least, unless somebody says how many. A kill costs one wave; each
has its share of files and queries to plan."""
BATCH_ROWS = 3_000_000
"""Of a batch: fewer cost Spark its plans again and again, more do not fit into a small heap."""
_WAVES = 4
"""What is neither large nor small has about so many."""
SUCCESS = "_SUCCESS"
REPORT = "report.html"
_OWN = "study."
_NUMBERED = re.compile(r"(batch|wave)=(\d{5,})")
_LOCK, _BILL = "study.lock", "study.bill.json"
_CANARY = "study.canary.json"
_MAKING = "_making-"
_attempts = count()
"""A task of an attempt that failed may write a while longer, and not where the next one does."""
_PATTERN = frozenset("*?[]{}\\")
SCRATCH = "_scratch-"
"""What folders begin with that last no longer than an engine."""


@dataclass(frozen=True)
class Plan:
    """What is run, and what is asked of it: see the module's docstring for what of it may
    change."""

    study: str
    """The text of its file."""
    seeds: int
    first: int
    share: float
    """Of runs that are judged in SQL though nothing is wrong with them."""
    wave: int
    """Runs of a wave."""
    batch_rows: int
    """Rows of history that are made into silver, or judged, at once; one wave may have more."""
    schema: int
    versions: dict[str, str]
    commit: str | None
    """For people: a commit of documentation is another, and its code the same."""

    @cached_property
    def parsed(self) -> Study:
        """The study itself."""
        return parse(self.study)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return self.seeds * len(self.parsed.variants)

    def waves(self) -> tuple[range, ...]:
        """Numbers of runs, wave by wave."""
        return tuple(
            range(start, min(start + self.wave, self.runs))
            for start in range(0, self.runs, self.wave)
        )


def wave_of(runs: int) -> int:
    """How many runs a wave has in a study of so many."""
    return max(SMALL_WAVE, min(WAVE, -(-runs // _WAVES)))


@dataclass(frozen=True, slots=True)
class Made:
    """What it took to make a folder."""

    rows: int
    bytes: int
    engine: str = ""
    """Which made it, as it describes itself; empty where that is not kept."""
    commit: str | None = None
    """Of the code that made it, where that is known."""
    digest: str = ""
    """Of what is in its files, whatever they are called."""
    of: str = ""
    """Of the waves that it was made of (`made_of`); empty where nobody has said so."""


class Lake:
    """The folder of one study, for one process at a time. Raises `StudyError` when it holds another
    study, when it cannot hold one, or when somebody is at it."""

    def __init__(self, root: Path, plan: Plan):
        self.root = root
        self.plan = plan
        _check_name(root)
        try:
            root.mkdir(parents=True, exist_ok=True)
            self._check_empty()
            held = lock(root / _LOCK)
            if held is None:
                raise StudyError(f"{root}: somebody else is at this study; wait, or end it")
            self._lock = held
            try:
                self._check()
                for each in root.glob(f"{SCRATCH}*"):  # of who was killed
                    shutil.rmtree(each)
            except BaseException:
                self._lock.close()  # or it is held for as long as anybody holds the error
                raise
        except OSError as error:
            raise StudyError(f"--out {no_folder(root, error)}") from None

    def close(self) -> None:
        """Let others at it."""
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
        found = read_object(path, "is no plan of a study; name another folder")
        check_same(self.root, found, told, self.plan.parsed)
        if found[SEEDS] < self.plan.seeds:
            self._end_before_new(found[SEEDS] * len(self.plan.parsed.variants))
        if (found[SEEDS], found[TEXT]) != (self.plan.seeds, self.plan.study):
            fresh = {**found, TEXT: self.plan.study, SEEDS: self.plan.seeds}
            write_whole(path, json.dumps(fresh, indent=1).encode())

    def _end_before_new(self, runs: int) -> None:
        """There were so many runs and are to be more: a wave that was the last and not full is made
        again, as others have been before the first that is new."""
        wave, there = divmod(runs, self.plan.wave)
        if there:
            self.end_before(self.bronze(wave))

    def bronze(self, wave: int) -> Path:
        """Where events of a wave lie."""
        return self.root / "bronze" / f"wave={wave:05d}"

    def silver(self, table: str, batch: int) -> Path:
        """Where a silver table of a batch of waves lies."""
        return self.root / "silver" / table / f"batch={batch:05d}"

    def verdicts(self, batch: int) -> Path:
        """Where SQL verdicts of a batch of waves lie: batches of their own."""
        return self.silver(names.VERDICTS, batch)

    def end_before(self, end: Path) -> None:
        """Take away that batch or wave and those behind it: there were more batches before a wave
        was made again. What is called otherwise is not the study's."""
        kind, _, number = end.name.partition("=")
        for folder in end.parent.glob(f"{kind}=*"):
            name = _NUMBERED.fullmatch(folder.name)
            if name is not None and int(name[2]) >= int(number) and folder.is_dir():
                shutil.rmtree(folder)

    def gold(self, table: str) -> Path:
        """Where a gold table lies."""
        return self.root / "gold" / table

    def spend(self, stage: str, seconds: float, *, once: bool = False) -> None:
        """Put it on the bill. `once`: only if nothing of this stage is on it. What is done anew
        with each command would make the report another each time."""
        bill = self.spent()
        if once and stage in bill:
            return
        bill[stage] = round(bill.get(stage, 0.0) + seconds, 3)
        write_whole(self.root / _BILL, json.dumps(bill).encode())

    def spent(self) -> dict[str, float]:
        """Seconds that each stage has taken, in all that was whole when a process ended."""
        path = self.root / _BILL
        if not path.exists():
            return {}
        wrong = "is no bill of a study; delete it, and what was spent so far is not told"
        bill = read_object(path, wrong)
        for seconds in bill.values():
            if not isinstance(seconds, int | float) or not 0 <= seconds < inf:
                raise StudyError(f"{path} {wrong}")
        return bill

    def keep_canary(self, found: Canary) -> None:
        """Keep what became of the canary, in place of what became of it before."""
        write_whole(self.root / _CANARY, json.dumps(found._asdict()).encode())

    def canary(self) -> Canary | None:
        """What became of it; None where that is not kept, or what is kept cannot be read: it is
        soon run again."""
        try:
            found = Canary(**json.loads((self.root / _CANARY).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError, RecursionError):
            return None
        return found if [*map(type, found)] == [str, bool, str, str] else None

    @property
    def report(self) -> Path:
        """Where the page lies."""
        return self.root / REPORT


def _check_name(root: Path) -> None:
    """Raises `StudyError` where an engine would take a folder's name for a pattern of many."""
    strange = sorted(_PATTERN.intersection("".join(root.absolute().parts[1:])))
    if strange:
        raise StudyError(f"{root}: engines read {' '.join(strange)} as a pattern; name another")


def made(folder: Path) -> Made | None:
    """What a folder cost; None when it is not there, or not whole."""
    told = _told(folder)
    if told is None or told.get("files") != _files(folder):
        return None
    # What does not say how it is called was made before it did.
    return _cost(told) if told.get("called") in {None, "/".join(folder.parts[-2:])} else None


def cost(folder: Path) -> Made | None:
    """As `made`, of a folder that has been looked at: its files are not."""
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
    """One digest for what is in these folders, in their order."""
    costs = map(cost, folders)
    return _digest("" if each is None else each.digest for each in costs)


def mark(folder: Path, of: str) -> None:
    """Keep of a folder that is whole what it was made of. Whoever is killed before has it made
    again."""
    told = {**(_told(folder) or {}), "of": of}
    write_whole(folder / SUCCESS, json.dumps(told).encode())


def _files(folder: Path) -> dict[str, int]:
    """Its Parquet files, as engines find them, and the bytes of each."""
    return {part.name: part.stat().st_size for part in sorted(folder.glob("*.parquet"))}


@contextmanager
def making(folder: Path, engine: str = "") -> Iterator[Path]:
    """A folder to be filled, which takes the place of `folder` once that has gone well. `engine`:
    who fills it, as it describes itself. Raises `StudyError` where nobody has filled it: there is
    a file even where there are no rows."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    making = folder.with_name(f"{_MAKING}{folder.name}-{os.getpid()}-{next(_attempts)}")
    making.mkdir()
    yield making
    files = _files(making)
    if not files:
        raise StudyError(
            f"{folder}: whoever wrote its rows wrote them elsewhere; name a folder that driver and "
            f"executors see under one path"
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
    """Take away what an earlier attempt has left."""
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
