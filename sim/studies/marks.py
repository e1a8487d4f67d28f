"""How many runs of a wave are over, and their rows, told by whoever runs them, wherever that is.

Beside a wave lies a folder of marks while it is made. Whoever has some runs to do keeps a file in
it, named by the first of them and the last, with a number for each that is over: its rows. Who does
them again begins the file anew. The driver adds up what has grown, and can say which runs are under
way: of each file the one behind those that are over. Nothing else connects it to those who run:
not a process of a pool, not a task on an executor. They see one folder anyway, for results go
there; one who does not says so before it has run anything.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

from ottla.sim.studies.bronze import Batch, Work, counted
from ottla.sim.studies.study import StudyError

Told: TypeAlias = Callable[[int, int], None]
"""Hears how many more runs are over, and how many rows they have."""
Said: TypeAlias = Callable[[str], None]
"""Hears in one line why runs are done again."""
_RUNNING = "_running-"
_NAME = re.compile(r"\d+-\d+")
_NUMBER = 8
"""Bytes of a number in a file of marks."""
_NAMED = 8
_UNSEEN = re.compile(r"executors do not see .* as the driver does: .*")


def marked(
    work: Work, runs: Sequence[int], marks: str, between: Callable[[], None] = lambda: None
) -> Iterator[Batch]:
    """The events of these runs, each marked when it is over. `between` two runs this is called.
    Raises `StudyError` where the folder of marks is not to be seen, and where its marks are not
    kept any more (`Marks.abandon`)."""
    with _begun(_mark(Path(marks), runs)) as mark:
        marked, before = 0, 0
        for batch, over, rows in counted(work, runs):
            if over > marked:
                mark.write((rows - before).to_bytes(_NUMBER, "big"))
            marked, before = over, rows
            between()
            if not os.fstat(mark.fileno()).st_nlink:
                raise StudyError("these runs are not waited for any more")
            if batch is not None:
                yield batch


def _mark(folder: Path, runs: Sequence[int]) -> Path:
    return folder / f"{runs[0]}-{runs[-1]}"


def _begun(mark: Path) -> BinaryIO:
    """Unbuffered: who looks sees every run."""
    try:
        return mark.open("wb", buffering=0)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise StudyError(
            f"executors do not see {mark.parent} as the driver does: {error.strerror}"
        ) from None


def unseen(told: str) -> str | None:
    """The line that says so, in what a driver is told of a task that has failed."""
    found = _UNSEEN.search(told)
    return None if found is None else found[0]


class Marks:
    """What a driver sees of them, and `told` hears."""

    def __init__(self, folder: Path, told: Told):
        self.folder = folder
        self._told = told
        self._files: dict[str, tuple[int, int]] = {}
        self._runs = self._rows = 0

    def look(self) -> None:
        """Tell what is new, be it nothing."""
        for each in self._marks():
            runs = each.stat().st_size // _NUMBER
            if self._files.get(each.name, (0, 0))[0] != runs:  # most are as they were
                self._files[each.name] = _read(each)
        # One who begins anew has fewer than before: what was told is not taken back.
        runs = max(0, sum(runs for runs, _ in self._files.values()) - self._runs)
        rows = max(0, sum(rows for _, rows in self._files.values()) - self._rows)
        self._runs += runs
        self._rows += rows
        self._told(runs, rows)

    def begun(self, runs: Sequence[int]) -> bool:
        """Whether anybody has begun with just these."""
        return _mark(self.folder, runs).exists()

    def anew(self, runs: Sequence[int]) -> None:
        """Nobody has: they will be done again, and not all at once."""
        mark = _mark(self.folder, runs)
        mark.unlink()
        self._files.pop(mark.name, None)

    def abandon(self) -> None:
        """Whoever is at these runs yet is not waited for; he ends behind the one that he is at."""
        for each in self._marks():
            each.unlink()

    def _marks(self) -> Iterator[Path]:
        """NFS keeps a file that is open under a name of its own when it is taken away."""
        return (each for each in self.folder.iterdir() if _NAME.fullmatch(each.name))

    def died(self, run: int) -> None:
        """A run is over because nobody outlives it: it has one row."""
        _mark(self.folder, [run]).write_bytes((1).to_bytes(_NUMBER, "big"))

    def under_way(self) -> list[int]:
        """The runs that somebody is at, or was when his process ended."""
        found = []
        for each in self._marks():
            first, last = map(int, each.name.split("-"))
            now = first + _read(each)[0]
            if now <= last:
                found.append(now)
        return sorted(found)


def named(work: Work, runs: Sequence[int]) -> str:
    """The first of these as people are told of them; empty if there is none, and for a study that
    nobody can read, who has begun with none of its runs."""
    try:
        told = ", ".join(map(work.named, runs[:_NAMED]))
    except StudyError:
        return ""
    return f"{told}, ..." if len(runs) > _NAMED else told


def killing(work: Work, runs: Sequence[int]) -> str:
    """What people are told of runs that take their process along, whoever else is there."""
    one, several = "kills its process: a row of its own", "kill their processes: a row each"
    return f"{named(work, runs)} {one if len(runs) == 1 else several}"


def _read(mark: Path) -> tuple[int, int]:
    """How many runs a file tells of, and how many rows; what is half written comes later."""
    told = mark.read_bytes()
    runs = len(told) // _NUMBER
    places = range(0, runs * _NUMBER, _NUMBER)
    return runs, sum(int.from_bytes(told[at : at + _NUMBER], "big") for at in places)


@contextmanager
def marks_of(wave: Path, told: Told) -> Iterator[Marks]:
    """The folder of marks for this wave; gone behind the block."""
    folder = wave.with_name(f"{_RUNNING}{wave.name}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    marks = Marks(folder, told)
    try:
        yield marks
        marks.look()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
