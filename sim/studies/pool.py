"""The runs of a wave in several processes of this machine, each writing its own Parquet files.

Runs are dealt out in chunks; a chunk is one file, written batch by batch as it is simulated, so
memory does not grow with the number of runs. How many runs are over is counted in memory that all
processes share: what is shown moves with every run, not with every file.

A process whose parent is gone ends at once; killed parents cannot tell it to.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

from ottla.sim.studies.bronze import Work, counted, schema

CHUNK = 25
"""Runs in a file."""
COMPRESSION = "zstd"
_AHEAD = 2
_LOOK_S = 0.2
_context = get_context("spawn")


class Pool:
    """Processes that simulate; they start with the first wave and stay."""

    def __init__(self, jobs: int):
        self._jobs = jobs
        self._over = _context.Value("q", 0)
        self._pool: ProcessPoolExecutor | None = None

    def simulate(self, work: Work, runs: range, folder: Path, told: Callable[[int], None]) -> None:
        """Write the events of these runs into a folder."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self._jobs, _context, _begin, (self._over,))
        size = max(1, min(CHUNK, -(-len(runs) // self._jobs)))
        todo = iter(range(0, len(runs), size))
        running: deque[Future[None]] = deque()
        seen = self._over.value
        while True:
            for start in islice(todo, _AHEAD * self._jobs - len(running)):
                chunk = runs[start : start + size]
                running.append(self._pool.submit(_write, work, chunk, str(folder)))
            if not running:
                return
            done, _ = wait(running, _LOOK_S, FIRST_COMPLETED)
            for each in done:
                running.remove(each)
                each.result()
            over = self._over.value
            told(over - seen)
            seen = over

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


_over: Any = None


def _begin(over: Any) -> None:
    global _over  # noqa: PLW0603 - what a process of the pool is given once
    _over = over
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _write(work: Work, runs: range, folder: str) -> None:
    from pyarrow import parquet

    path = Path(folder) / f"part-{runs.start:010d}.parquet"
    with parquet.ParquetWriter(path, schema(), compression=COMPRESSION) as writer:
        before = 0
        for batch, over in counted(work, runs):
            if batch is not None:
                writer.write_batch(batch)
            with _over.get_lock():
                _over.value += over - before
            before = over
