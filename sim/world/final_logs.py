"""The rows for all logs at the end of a run, record by record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.log.record_batch import SEQUENCE_MASK, identity
from ottla.log.types import RecordBatch
from ottla.raft.types import Entry, GroupId, NodeId
from ottla.sim.world.log_view import NOBODY, LogView

if TYPE_CHECKING:
    from ottla.sim.world.world import World


def add_final_logs(
    world: World, views: Mapping[tuple[NodeId, GroupId], LogView], partitions: Mapping[GroupId, int]
) -> None:
    """Add the rows for every living node, in the order of nodes and groups."""
    for (node, group), view in sorted(views.items(), key=lambda each: each[0]):
        if partitions[group] >= 0 and node in world.lives:
            for entry in world.lives[node].store.scan(group):
                _add_entry(world, node, partitions[group], view, entry)


def _add_entry(world: World, node: NodeId, partition: int, view: LogView, entry: Entry) -> None:
    """As the store returns it; only the chain is that of what was written."""
    batch = entry.payload
    if not isinstance(batch, RecordBatch):
        return
    seen, who = view.at(entry.index), identity(batch)
    pid, epoch, first, _ = NOBODY if who is None else who
    for place, value in enumerate(world.decoder.values(batch)):
        world.history.add(
            "final",
            node=node,
            partition=partition,
            term=entry.term,
            off=batch.base_offset + place,
            pid=pid,
            epoch=epoch,
            seq=None if first is None else (first + place) & SEQUENCE_MASK,
            value=value,
            chain=seen.chain,
            aux=int(entry.index <= view.commit),
        )
