"""How many runs of a wave are over, told by whoever runs them, wherever that is.

Beside a wave lies a folder of marks while it is made. Whoever has some runs to do keeps a file in
it, named by the first of them, with a byte for each that is over; who does them again begins the
file anew. The driver adds up sizes. Nothing else connects it to those who run: not a process of a
pool, not a task on an executor. They see one folder anyway, for results go there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ottla.sim.studies.bronze import Batch, Work, counted

_RUNNING = "_running-"


def marked(
    work: Work, runs: Sequence[int], marks: str, between: Callable[[], None] = lambda: None
) -> Iterator[Batch]:
    """The events of these runs, each marked when it is over. `between` two runs this is called."""
    # Unbuffered: who looks sees every run.
    with (Path(marks) / str(runs[0])).open("wb", buffering=0) as mark:
        before = 0
        for batch, over in counted(work, runs):
            mark.write(b"." * (over - before))
            before = over
            between()
            if batch is not None:
                yield batch


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
