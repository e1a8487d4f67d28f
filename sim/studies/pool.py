"""The runs of a wave in several processes of this machine, each writing its own Parquet files.

Runs are dealt out in chunks; a chunk is one file, written batch by batch as it is simulated, so
memory does not grow with the number of runs. Processes end with who started them, however that ends
(`ottla.sim.processes`).
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TypeVar

from ottla.sim.canary import Canary, canary
from ottla.sim.processes import go_on, processes
from ottla.sim.studies.bronze import Work, schema
from ottla.sim.studies.marks import Marks, marked
from ottla.sim.studies.study import StudyError

CHUNK = 25
"""Runs in a file, at most."""
_CHUNKS = 4
"""A process has at least so many in a wave, or the last ones would be waited for by the others."""
COMPRESSION = "zstd"
_AHEAD = 2
_LOOK_S = 0.2
T = TypeVar("T")


class Pool:
    """Processes that simulate; they start with the first that is asked of them and stay."""

    def __init__(self, jobs: int):
        self._jobs = jobs
        self._stack = ExitStack()
        self._pool: ProcessPoolExecutor | None = None

    def canary(self) -> Canary:
        """What becomes of the canary in one of them."""
        return _given(self._started().submit(canary))

    def simulate(self, work: Work, runs: range, folder: Path, marks: Marks) -> None:
        """Write the events of these runs into a folder."""
        pool = self._started()
        size = max(1, min(CHUNK, -(-len(runs) // (_CHUNKS * self._jobs))))
        todo = iter(range(0, len(runs), size))
        running: deque[Future[None]] = deque()
        while True:
            for start in islice(todo, _AHEAD * self._jobs - len(running)):
                chunk = runs[start : start + size]
                asked = pool.submit(_write, work, chunk, str(folder), str(marks.folder))
                running.append(asked)
            if not running:
                return
            done, _ = wait(running, _LOOK_S, FIRST_COMPLETED)
            for each in done:
                running.remove(each)
                _given(each)
            marks.look()

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = self._stack.enter_context(processes(self._jobs))
        return self._pool

    def close(self) -> None:
        """End the processes."""
        self._stack.close()


def _given(asked: Future[T]) -> T:
    try:
        return asked.result()
    except BrokenProcessPool:
        raise StudyError(
            "a process that simulates was killed, perhaps for want of memory; "
            "the same command goes on from here"
        ) from None


def _write(work: Work, runs: range, folder: str, marks: str) -> None:
    from pyarrow import parquet

    path = Path(folder) / f"part-{runs.start:010d}.parquet"
    with parquet.ParquetWriter(path, schema(), compression=COMPRESSION) as writer:
        for batch in marked(work, runs, marks, go_on):
            writer.write_batch(batch)
