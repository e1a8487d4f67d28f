"""`Disks`: the disks of a cluster's nodes. They outlive the nodes that are killed on them.

Without a data folder a disk is a `MemoryDisk`; with one it is an LMDB environment per node, in
`node-1`, `node-2`..., each with a writer thread of its own (one of the only two uses of threads).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from ottla.broker.config import ClusterConfig, FlushPolicy
from ottla.broker.errors import ConfigError
from ottla.log.errors import StoreError
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.store import LogStore
from ottla.raft.types import NodeId

CLUSTER_ID_KEY = "cluster-id"
NODES_KEY = "nodes"
"""How many nodes the cluster has: for life, as its groups' voters are fixed."""


class Disks:
    """See the module's text."""

    def __init__(self, nodes: Sequence[NodeId], folder: Path | None, config: ClusterConfig):
        self._nodes = nodes
        self._folder = folder
        self._config = config
        self._memory = {node: MemoryDisk() for node in nodes}
        self._open: dict[NodeId, LogStore] = {}
        self._writers: dict[NodeId, ThreadPoolExecutor] = {}

    def cluster_id(self, invent: Callable[[], str]) -> str:
        """The cluster's id: what the first disk remembers, or a new one, told to every disk.

        Raises `ConfigError`, with every disk closed, when they are of a cluster of another size.
        """
        stores = [self.open(node) for node in self._nodes]
        self._check_size(stores)
        known = next(filter(None, (each.get_meta(CLUSTER_ID_KEY) for each in stores)), None)
        chosen = (known or invent().encode()).decode()
        for store in stores:
            if store.get_meta(CLUSTER_ID_KEY) is None:
                store.put_meta(CLUSTER_ID_KEY, chosen.encode())
        return chosen

    def _check_size(self, stores: Sequence[LogStore]) -> None:
        asked = str(len(self._nodes)).encode()
        for store in stores:
            known = store.get_meta(NODES_KEY)
            if known is None:
                store.put_meta(NODES_KEY, asked)
            elif known != asked:
                for node in self._nodes:
                    self.close(node)
                raise ConfigError(
                    f"{self._folder} is of a cluster of {known.decode()} nodes, not of "
                    f"{asked.decode()}; a cluster keeps its nodes for life"
                )

    def open(self, node: NodeId) -> LogStore:
        """The node's store, opened if it is not."""
        store = self._open.get(node)
        if store is None:
            store = self._open[node] = self._make(node)
        return store

    def _make(self, node: NodeId) -> LogStore:
        if self._folder is None:
            return MemoryStore(self._memory[node])
        from ottla.log.lmdb_store import LmdbStore  # Costs memory: only where it is used.

        durable = self._config.flush is not FlushPolicy.OFF
        return LmdbStore.open(self._folder / f"node-{node}", node=node, sync=durable)

    def writer(self, node: NodeId) -> Executor | None:
        """The thread in which the node's syncs run; None where they need none."""
        if self._folder is None:
            return None
        if node not in self._writers:
            self._writers[node] = ThreadPoolExecutor(1, thread_name_prefix=f"ottla-disk-{node}")
        return self._writers[node]

    def close(self, node: NodeId) -> None:
        """A clean end: what is appended is synced, unless the disk has failed; the store closes."""
        store = self._open.pop(node, None)
        if store is not None:
            self._join_writer(node)
            with suppress(StoreError):  # The node has said so already.
                job = store.begin_sync()
                if job is not None:
                    job.run()
                    store.finish_sync(job)
            store.close()

    async def crash(self, node: NodeId) -> None:
        """Signal 9: what is not synced is gone."""
        store = self._open.pop(node, None)
        if store is not None:
            self._join_writer(node)
            store.close()
            self._memory[node].crash()

    def _join_writer(self, node: NodeId) -> None:
        """A transaction in the writer thread ends before its environment is closed."""
        writer = self._writers.pop(node, None)
        if writer is not None:
            writer.shutdown(wait=True)
