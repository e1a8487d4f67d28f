"""What the check of every page costs, compared with the whole opening of a folder (0029).

A log is written in three ways: many batches to a sync, one batch of 1 KB to a sync, and one of 100
bytes. Then the check alone, and the whole opening with the check and the recovery, are measured in
seconds of CPU. The file is read from the page cache, so the disk does not count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.measure import Outcome, Report
from bench.restarting import shared_memory
from ottla.log.build import NewRecord, build_batch
from ottla.log.lmdb_store import LmdbStore
from ottla.log.note import DATA
from ottla.log.pages import check_pages
from ottla.log.record_batch import read_beginning
from ottla.log.store import Write
from ottla.raft.types import Entry, EntryKind, HardState

GROUP = 1
CACHE_BYTES = 1 << 20
SHAPES = ((1_000, 256), (1_000, 1), (100, 1))
"""Bytes of a batch's one record, and batches to a sync."""


@dataclass(slots=True)
class Plan:
    """How large the log is, in bytes of records."""

    log_bytes: int


FULL = Plan(100 << 20)
QUICK = Plan(200_000)


def run(plan: Plan) -> Report:
    """Measure check and opening, for each way of writing."""
    outcomes = []
    for record_bytes, each_sync in SHAPES:
        with tempfile.TemporaryDirectory(dir=shared_memory()) as folder:
            path = Path(folder) / "node"
            size = _write(path, plan.log_bytes // record_bytes, record_bytes, each_sync)
            looked = _seconds(partial(check_pages, path / DATA))
            opened = _seconds(partial(_open, path))
        what = f"{record_bytes} bytes a batch, {each_sync} to a sync"
        outcomes.append(
            Outcome(
                f"look at every page, {what}",
                1e3 * looked,
                "ms",
                note=f"of {1e3 * opened:.0f} ms that an opening takes; {size >> 20} MiB of file",
            )
        )
    return Report("folders", outcomes)


def _write(path: Path, batches: int, record_bytes: int, each_sync: int) -> int:
    """Fill a store with so many batches. Returns the bytes of its file that are used on disk."""
    batch = read_beginning(build_batch([NewRecord(value=b"x" * record_bytes)]))
    store = LmdbStore.open(path, sync=False, cache_bytes=CACHE_BYTES)
    for first in range(1, batches + 1, each_sync):
        last = min(batches, first + each_sync - 1)
        entries = [Entry(n, 1, EntryKind.BATCH, batch) for n in range(first, last + 1)]
        store.append([Write(GROUP, hard_state=HardState(1), first=first, entries=entries)])
        job = store.begin_sync()
        assert job is not None, "something was appended"
        job.run()
        store.finish_sync(job)
    store.close()
    return 512 * (path / DATA).stat().st_blocks


def _open(path: Path) -> None:
    LmdbStore.open(path).close()


def _seconds(call: Callable[[], object]) -> float:
    """CPU of one call, the least of three."""
    found = []
    for _ in range(3):
        begun = time.process_time()
        call()
        found.append(time.process_time() - begun)
    return min(found)
