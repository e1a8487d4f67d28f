"""The runs of a wave in several processes of this machine, each writing its own Parquet files.

Runs are distributed in chunks. A chunk is one file, written batch by batch while it is simulated,
so memory does not grow with the number of runs. Processes end with their parent, however that ends
(`ottla.sim.machine.processes`).

If one process of a pool dies, all do. Chunks that had begun are then repeated run by run, in a
single process. If a run kills this process, too, it has killed two: it becomes a row of kind
*breakdown*, and the wave goes on. A run that was killed by chance, or because memory was short
among many, succeeds the second time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TypeAlias

from ottla.sim.machine.processes import go_on, processes
from ottla.sim.studies.bronze import Batch, Work, deadly, schema
from ottla.sim.studies.findings import counted
from ottla.sim.studies.marks import Marks, Said, killing, marked
from ottla.sim.studies.study import StudyError
from ottla.sim.sweeps.canary import Canary, canary

CHUNK = 25
"""Most runs in a file."""
_CHUNKS = 4
"""The fewest chunks of a process in a wave; with fewer, processes would wait for the last
chunks."""
COMPRESSION = "zstd"
_AHEAD = 2
_LOOK_S = 0.2
_KILLED = (
    "a process that simulates was killed, perhaps because memory was short; "
    "the same command goes on from here"
)
_Task: TypeAlias = Callable[[range], None]
"""Writes the events of some runs, in a process of a pool."""


class Pool:
    """Processes that simulate; they start with the first request and stay. `said` is called with
    why runs are repeated."""

    def __init__(self, jobs: int, said: Said = lambda _: None):
        self._jobs = jobs
        self._say = said
        self._stack = ExitStack()
        self._pool: ProcessPoolExecutor | None = None

    def canary(self) -> Canary:
        """The canary's result in one of them. Raises `StudyError` if the process dies."""
        try:
            return self._started().submit(canary).result()
        except BrokenProcessPool:
            raise StudyError(_KILLED) from None

    def simulate(self, work: Work, runs: range, folder: Path, marks: Marks) -> None:
        """Write the events of these runs into a folder. Raises `StudyError` if a process dies
        before it has begun any."""
        size = max(1, min(CHUNK, -(-len(runs) // (_CHUNKS * self._jobs))))
        todo = deque(runs[start : start + size] for start in range(0, len(runs), size))
        task = partial(_write, work, folder, str(marks.folder))
        while lost := self.do(task, todo, marks):
            begun = [each for each in lost if marks.begun(each)]
            if not begun:
                raise StudyError(_KILLED)
            todo.extendleft(each for each in lost if each not in begun)
            again = counted(sum(map(len, begun)), "run")
            self._say(f"a process that simulates died; {again} to be done again, one by one")
            killers = [run for each in begun for run in _deadly_runs(task, each, marks)]
            for run in killers:
                _write_part(folder, run, [deadly(work, run)])
            if killers:
                self._say(killing(work, killers))

    def do(self, task: _Task, todo: deque[range], marks: Marks) -> list[range]:
        """Do what is in `todo` until all is done or a process dies. Returns what the processes had
        been given and had not done. The next call uses fresh processes."""
        lost: list[range] = []
        while todo and not lost:  # a process that dies while idle costs nothing
            lost = self._until_one_dies(task, todo, marks)
        return lost

    def _until_one_dies(self, task: _Task, todo: deque[range], marks: Marks) -> list[range]:
        pool, running = self._started(), dict[Future[None], range]()
        try:
            while todo or running:
                while todo and len(running) < _AHEAD * self._jobs:
                    running[pool.submit(task, todo[0])] = todo[0]
                    todo.popleft()
                done, _ = wait(running, _LOOK_S, FIRST_COMPLETED)
                for each in done:
                    each.result()
                    del running[each]
                marks.look()
        except BrokenProcessPool:
            wait(running)
            self.close()
            return [runs for asked, runs in running.items() if asked.exception() is not None]
        return []

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = self._stack.enter_context(processes(self._jobs))
        return self._pool

    def close(self) -> None:
        """End the processes; the next request starts fresh ones."""
        self._pool = None
        self._stack.close()


def _deadly_runs(task: _Task, runs: range, marks: Marks) -> Iterator[int]:
    """Do these runs one by one; yields the numbers of those that kill their process. Raises
    `StudyError` if it dies before it has begun."""
    marks.anew(runs)
    with closing(Pool(1)) as alone:
        for run in runs:
            one = range(run, run + 1)
            if alone.do(task, deque([one]), marks):
                if not marks.begun(one):
                    raise StudyError(_KILLED)
                marks.died(run)
                yield run


def _write(work: Work, folder: Path, marks: str, runs: range) -> None:
    _write_part(folder, runs.start, marked(work, runs, marks, go_on))


def _write_part(folder: Path, first: int, batches: Iterable[Batch]) -> None:
    """Write one file, named by the first of its runs."""
    from pyarrow import parquet

    path = folder / f"part-{first:010d}.parquet"
    with parquet.ParquetWriter(path, schema(), compression=COMPRESSION) as writer:
        for batch in batches:
            writer.write_batch(batch)
