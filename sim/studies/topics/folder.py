"""Topics in a node's data folder: what `ottla up --data-dir` left, or is writing now.

**Theory.** A folder holds one Raft log per partition and the controller's (group 0), which says
which group is which partition. Offsets count records and log indexes count entries. Both rise
together, so the entry of an offset is found by bisection, and nothing is read twice.

A node's log is not what a consumer sees, because there is no high watermark on a disk. It contains
what the last leader had not replicated, which may be cut off when the node takes part again.
Records that DeleteRecords took from the middle of a batch are still there. If the cluster has
settled, the log holds exactly what consumers were shown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgpack

from ottla.broker.arguments.fields import CommandError
from ottla.broker.controller.catalog import Catalog
from ottla.broker.controller.commands import logged
from ottla.broker.controller.controller import CONTROLLER_GROUP
from ottla.broker.errors import SnapshotFormatError
from ottla.broker.images import PartitionImage
from ottla.log.errors import CompactedError, StoreError
from ottla.log.types import Offset, RecordBatch
from ottla.raft.types import EntryKind, GroupId, LogIndex
from ottla.sim.studies.topics.asked import PASSED_OVER, DataLossError, SourceError
from ottla.sim.studies.topics.identity import check_same
from ottla.sim.studies.topics.offsets import Bounds, Placed, Range

READ_BYTES = 1024 * 1024
"""Bytes read in one transaction: a long one would keep a running cluster from reusing pages."""
NEAR = 64
"""How many entries back from the end the last batch is searched first."""


class FolderTopics:
    """See the module's docstring. Raises `SourceError` for everything that keeps it from being
    read."""

    def __init__(self, path: str, node: int, *, strict: bool = True) -> None:
        from ottla.log.lmdb_store import LmdbView  # costs memory, so only if it is used

        self._folder = Path(path)
        self._node = node
        self._strict = strict
        home = self._folder / f"node-{node}"
        if not home.is_dir():
            raise SourceError(
                f"{self._folder} has no node-{node}; name a folder of `ottla up --data-dir`"
            )
        try:
            self._view = LmdbView(home)
            self._catalog = self._read_catalog()
        except (StoreError, SnapshotFormatError) as error:
            raise SourceError(str(error)) from None

    def close(self) -> None:
        """Close the folder."""
        self._view.close()

    def bounds(self, topic: str) -> dict[int, Bounds]:
        """By partition, where the log on this disk starts and ends."""
        try:
            return {each.partition: self._bounds(each) for each in self._partitions(topic)}
        except StoreError as error:
            raise SourceError(f"topic {topic}: {error}") from None

    def led(self, topic: str) -> tuple[dict[int, Bounds], frozenset[int]]:
        """As `bounds`: a folder has no leaders to wait for."""
        return self.bounds(topic), frozenset()

    def topic_id(self, topic: str) -> str:
        """The group of its first partition, because group numbers are not reused."""
        return str(self._partitions(topic)[0].group)

    def read(self, wanted: Range) -> Iterator[Placed]:
        """The batches that overlap a range, in order."""
        place = f"{wanted.topic}-{wanted.partition}"
        partition = self._partitions(wanted.topic)[wanted.partition]
        check_same(wanted.topic, wanted.topic_id, self.topic_id(wanted.topic))
        at = wanted.start
        try:
            start = self._bounds(partition).start
            if start > at and self._strict:
                raise DataLossError(
                    f"{place}: records {at} to {start - 1} are gone, the log starts at {start}; "
                    f"{PASSED_OVER}"
                )
            at = max(at, start)
            for _, batch in self._batches(partition.group, self._index_of(partition.group, at)):
                if batch.base_offset >= wanted.end:
                    return
                yield Placed(at, batch)
                at = batch.last_offset + 1
        except CompactedError:
            raise DataLossError(f"{place} at offset {at}: deleted while it was read") from None
        except StoreError as error:
            raise SourceError(f"{place} at offset {at}: {error}") from None
        if at < wanted.end:
            raise SourceError(
                f"{place} ends at {at} in {self._folder}/node-{self._node}, and was longer: what "
                f"was on no majority has been cut off"
            )

    # ---- topics

    def _read_catalog(self) -> Catalog:
        """The topics according to the controller's log on this disk."""
        snapshot = self._view.snapshot(CONTROLLER_GROUP)
        catalog = Catalog("") if snapshot is None else Catalog.decode("", snapshot.data)
        at = 1 if snapshot is None else snapshot.meta.index + 1
        while entries := self._view.entries(CONTROLLER_GROUP, at, READ_BYTES):
            for entry in entries:
                if entry.kind is EntryKind.COMMAND:
                    with suppress(CommandError):  # such a command changes nothing on nodes either
                        catalog.apply(entry.index, logged(cast(bytes, entry.payload)))
            at = entries[-1].index + 1
        return catalog

    def _partitions(self, topic: str) -> tuple[PartitionImage, ...]:
        found = self._catalog.topics.get(topic)
        if found is None:
            known = ", ".join(self._catalog.topics) or "none"
            raise SourceError(f"there is no topic {topic} in {self._folder}; there are: {known}")
        for each in found.partitions:
            if self._node not in each.replicas:
                nodes = ", ".join(map(str, each.replicas))
                raise SourceError(
                    f"node {self._node} has no replica of {topic}-{each.partition}; read with "
                    f"node= one of {nodes}"
                )
        return found.partitions

    # ---- offsets

    def _bounds(self, partition: PartitionImage) -> Bounds:
        group = partition.group
        state = self._view.state(group)
        if state is None:
            return Bounds(0, 0)
        start, end = self._snapshot_bounds(group)
        if state.last_index >= state.first_index:
            first = next(self._batches(group, state.first_index), None)
            last = self._last_batch(group, state.first_index, state.last_index)
            if first is not None and last is not None:
                start, end = max(start, first[1].base_offset), last.last_offset + 1
        return Bounds(min(start, end), end)

    def _snapshot_bounds(self, group: GroupId) -> tuple[Offset, Offset]:
        """Log start and end in the partition's snapshot (`Partition._compact`)."""
        snapshot = self._view.snapshot(group)
        if snapshot is None:
            return 0, 0
        body: dict[str, Any] = msgpack.unpackb(snapshot.data)
        return int(body["log_start_offset"]), int(body["offsets"][1])

    def _last_batch(self, group: GroupId, first: LogIndex, last: LogIndex) -> RecordBatch | None:
        """The last batch of a log, searched from its end in steps that double."""
        reach = NEAR
        while True:
            begin = max(first, last + 1 - reach)
            found = deque(self._batches(group, begin), maxlen=1)
            if found or begin == first:
                return found[0][1] if found else None
            reach *= 2

    def _index_of(self, group: GroupId, offset: Offset) -> LogIndex:
        """The first index after which no batch ends before `offset`."""
        state = self._view.state(group)
        if state is None:
            return 1
        low, high = state.first_index, state.last_index + 1
        while low < high:
            middle = (low + high) // 2
            found = next(self._batches(group, middle), None)
            if found is None or found[1].last_offset >= offset:
                high = middle
            else:
                low = found[0] + 1
        return low

    def _batches(self, group: GroupId, at: LogIndex) -> Iterator[tuple[LogIndex, RecordBatch]]:
        """Batches from an index on, each with its own index; bytes are read step by step."""
        size = READ_BYTES // 16
        while entries := self._view.entries(group, at, size):
            for entry in entries:
                if entry.kind is EntryKind.BATCH:
                    yield entry.index, cast(RecordBatch, entry.payload)
            at = entries[-1].index + 1
            size = READ_BYTES
