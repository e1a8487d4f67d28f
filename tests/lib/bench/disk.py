"""The LMDB store beside a bare loop that writes and syncs the same bytes as often.

The loop is the floor of any store: one file, `write` for each request, `fdatasync` for each commit.
The store gets the same requests as entries of one turn for each commit.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.frames import RECORD_BYTES
from bench.measure import Outcome, Report, interleave, middle, ratio
from bench.throughput import SIZES
from ottla.log.build import build_batch
from ottla.log.lmdb_store import LmdbStore
from ottla.log.record_batch import read_batch
from ottla.log.store import Write
from ottla.log.types import RecordBatch
from ottla.raft.types import Entry, EntryKind

TARGET = 0.5
GROUP = 1
REQUESTS_A_COMMIT = (5, 50)


@dataclass(slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    commits: int
    round_bytes: int

    def count(self, commit_bytes: int) -> int:
        """Commits of one round."""
        return max(2, min(self.commits, self.round_bytes // commit_bytes))


FULL = Plan(rounds=5, commits=100, round_bytes=150 << 20)
QUICK = Plan(rounds=1, commits=5, round_bytes=10 << 20)


def run(plan: Plan) -> Report:
    """Every size with every number of requests to a commit."""
    report = Report("disk", [])
    with tempfile.TemporaryDirectory() as folder:
        for name, size in SIZES.items():
            batch = read_batch(build_batch([b"x" * RECORD_BYTES] * (size // RECORD_BYTES)))
            assert isinstance(batch, RecordBatch), f"built a batch with a defect: {batch}"
            for requests in REQUESTS_A_COMMIT:
                report.outcomes.append(_compare(plan, Path(folder), name, batch, requests))
    return report


def _compare(plan: Plan, folder: Path, name: str, batch: RecordBatch, requests: int) -> Outcome:
    commits = plan.count(len(batch) * requests)
    sides: dict[str, Callable[[], dict[str, float]]] = {
        "bare": partial(_bare, folder, batch.data, requests, commits),
        "store": partial(_store, folder, batch, requests, commits),
    }
    rounds = interleave(plan.rounds, sides)
    store, bare = rounds["store"], rounds["bare"]
    note = (
        f"{middle(store, 'rate'):,.0f} of {middle(bare, 'rate'):,.0f} req/s; "
        f"CPU {middle(store, 'cpu_us'):.0f} and {middle(bare, 'cpu_us'):.0f} us"
    )
    return Outcome(
        f"LMDB over bare file, {requests} x {name}",
        ratio(store, bare, "rate"),
        "x",
        TARGET,
        at_least=True,
        note=note,
        details=rounds,
    )


def _bare(folder: Path, data: bytes, requests: int, commits: int) -> dict[str, float]:
    path = folder / "bare"
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    cpu, start = time.process_time(), time.perf_counter()
    for _ in range(commits):
        for _ in range(requests):
            os.write(file, data)
        os.fdatasync(file)
    found = _rates(requests * commits, start, cpu)
    os.close(file)
    path.unlink()
    return found


def _store(folder: Path, batch: RecordBatch, requests: int, commits: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        store = LmdbStore.open(Path(place) / "node-1", node=1, sync=True)
        index = 1
        _commit(store, [])
        cpu, start = time.process_time(), time.perf_counter()
        for _ in range(commits):
            _commit(
                store,
                [Entry(index + each, 1, EntryKind.BATCH, batch) for each in range(requests)],
            )
            index += requests
        found = _rates(requests * commits, start, cpu)
        store.close()
    return found


def _commit(store: LmdbStore, entries: list[Entry]) -> None:
    store.append([Write(GROUP, first=entries[0].index if entries else 0, entries=entries)])
    job = store.begin_sync()
    if job is not None:
        job.run()
        store.finish_sync(job)


def _rates(requests: int, start: float, cpu: float) -> dict[str, float]:
    seconds = time.perf_counter() - start
    return {
        "rate": requests / seconds,
        "cpu_us": (time.process_time() - cpu) / requests * 1e6,
    }
