"""How many runs of a wave are over, told by whoever runs them, wherever that is.

Beside a wave lies a folder of marks while it is made. Whoever has some runs to do keeps a file in
it, named by the first of them, with a byte for each that is over; who does them again begins the
file anew. The driver adds up sizes. Nothing else connects it to those who run: not a process of a
pool, not a task on an executor. They see one folder anyway, for results go there; one who does not
says so before it has run anything.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ottla.sim.studies.bronze import Batch, Work, counted
from ottla.sim.studies.study import StudyError

_RUNNING = "_running-"
_UNSEEN = re.compile(r"executors do not see .* as the driver does: .*")


def marked(
    work: Work, runs: Sequence[int], marks: str, between: Callable[[], None] = lambda: None
) -> Iterator[Batch]:
    """The events of these runs, each marked when it is over. `between` two runs this is called.
    Raises `StudyError` where the folder of marks is not to be seen."""
    with _begun(Path(marks), runs[0]) as mark:
        before = 0
        for batch, over in counted(work, runs):
            mark.write(b"." * (over - before))
            before = over
            between()
            if batch is not None:
                yield batch


def _begun(folder: Path, first: int) -> BinaryIO:
    """Unbuffered: who looks sees every run."""
    try:
        return (folder / str(first)).open("wb", buffering=0)
    except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
        raise StudyError(
            f"executors do not see {folder} as the driver does: {error.strerror}"
        ) from None


def unseen(told: str) -> str | None:
    """The line that says so, in what a driver is told of a task that has failed."""
    found = _UNSEEN.search(told)
    return None if found is None else found[0]


class Marks:
    """What a driver sees of them; `told` hears how many more runs are over."""

    def __init__(self, folder: Path, told: Callable[[int], None]):
        self.folder = folder
        self._told = told
        self._seen = 0

    def look(self) -> None:
        """Tell what is new, be it nothing."""
        over = sum(each.stat().st_size for each in self.folder.iterdir())
        # One who begins anew has fewer than before: what was told is not taken back.
        more = max(0, over - self._seen)
        self._seen += more
        self._told(more)


@contextmanager
def marks_of(wave: Path, told: Callable[[int], None]) -> Iterator[Marks]:
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
