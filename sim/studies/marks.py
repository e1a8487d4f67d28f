"""How many runs of a wave are done, and their rows, reported by the processes that run them.

While a wave is made there is a folder of marks beside it. A process with some runs keeps a file in
it, named by the first and the last of them, with a number for each run that is done: its rows. A
process that repeats them begins the file anew. The driver adds up what has grown, and can say which
runs are being run: in each file the one after those that are done. Nothing else connects the driver
to these processes, neither to those of a pool nor to tasks on an executor. They share a folder
anyway, for the results. A process that does not see it reports that before it runs anything.
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
"""Called with how many more runs are done, and how many rows they have."""
Said: TypeAlias = Callable[[str], None]
"""Called with one line that says why runs are repeated."""
_RUNNING = "_running-"
_NAME = re.compile(r"\d+-\d+")
_NUMBER = 8
"""Bytes of a number in a file of marks."""
_NAMED = 8
_UNSEEN = re.compile(r"executors do not see .* as the driver does: .*")


def marked(
    work: Work, runs: Sequence[int], marks: str, between: Callable[[], None] = lambda: None
) -> Iterator[Batch]:
    """The events of these runs, each marked when it is done. `between` is called between two runs.
    Raises `StudyError` if the folder of marks cannot be seen, or if its marks were removed
    (`Marks.abandon`)."""
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
    """Unbuffered, so that the driver sees every run."""
    try:
        return mark.open("wb", buffering=0)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise StudyError(
            f"executors do not see {mark.parent} as the driver does: {error.strerror}"
        ) from None


def unseen(told: str) -> str | None:
    """The line that says so, in the driver's text about a failed task."""
    found = _UNSEEN.search(told)
    return None if found is None else found[0]


class Marks:
    """The driver's view of the marks, which it reports to `told`."""

    def __init__(self, folder: Path, told: Told):
        self.folder = folder
        self._told = told
        self._files: dict[str, tuple[int, int]] = {}
        self._runs = self._rows = 0

    def look(self) -> None:
        """Report what is new, even if it is nothing."""
        for each in self._marks():
            runs = each.stat().st_size // _NUMBER
            if self._files.get(each.name, (0, 0))[0] != runs:  # most have not changed
                self._files[each.name] = _read(each)
        # A file that was begun anew has fewer runs than before: what was reported stays.
        runs = max(0, sum(runs for runs, _ in self._files.values()) - self._runs)
        rows = max(0, sum(rows for _, rows in self._files.values()) - self._rows)
        self._runs += runs
        self._rows += rows
        self._told(runs, rows)

    def begun(self, runs: Sequence[int]) -> bool:
        """Whether a process has begun exactly these runs."""
        return _mark(self.folder, runs).exists()

    def anew(self, runs: Sequence[int]) -> None:
        """Forget these: they will be repeated, but not all at once."""
        mark = _mark(self.folder, runs)
        mark.unlink()
        self._files.pop(mark.name, None)

    def abandon(self) -> None:
        """Processes that still run these are not waited for any more; they end after their present
        run."""
        for each in self._marks():
            each.unlink()

    def _marks(self) -> Iterator[Path]:
        """If an open file is removed, NFS keeps it under a name of its own."""
        return (each for each in self.folder.iterdir() if _NAME.fullmatch(each.name))

    def died(self, run: int) -> None:
        """A run is done because it always kills its process: it has one row."""
        _mark(self.folder, [run]).write_bytes((1).to_bytes(_NUMBER, "big"))

    def under_way(self) -> list[int]:
        """The runs that a process runs, or ran when it ended."""
        found = []
        for each in self._marks():
            first, last = map(int, each.name.split("-"))
            now = first + _read(each)[0]
            if now <= last:
                found.append(now)
        return sorted(found)


def named(work: Work, runs: Sequence[int]) -> str:
    """The first of these runs by their names in messages; empty: there is none, or the study cannot
    be read, so that none of its runs has begun."""
    try:
        told = ", ".join(map(work.named, runs[:_NAMED]))
    except StudyError:
        return ""
    return f"{told}, ..." if len(runs) > _NAMED else told


def killing(work: Work, runs: Sequence[int]) -> str:
    """The message about runs that kill their process, whatever other runs it has."""
    one, several = "kills its process: a row of its own", "kill their processes: a row each"
    return f"{named(work, runs)} {one if len(runs) == 1 else several}"


def _read(mark: Path) -> tuple[int, int]:
    """How many runs a file has, and how many rows; a half-written number comes later."""
    told = mark.read_bytes()
    runs = len(told) // _NUMBER
    places = range(0, runs * _NUMBER, _NUMBER)
    return runs, sum(int.from_bytes(told[at : at + _NUMBER], "big") for at in places)


@contextmanager
def marks_of(wave: Path, told: Told) -> Iterator[Marks]:
    """The folder of marks for this wave; removed after the block."""
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
