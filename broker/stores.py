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


def knows(cluster: str, told: bytes | None) -> bool:
    """Whether a disk on which this stands as `CLUSTER_ID_KEY` is one of the cluster's.

    One that is not has forgotten the node's votes and log, or never had any: nobody may take part
    on it (sim-S35).
    """
    return told is not None and told.decode() == cluster


class Disks:
    """See the module's text."""

    def __init__(self, nodes: Sequence[NodeId], folder: Path | None, config: ClusterConfig):
        self._nodes = nodes
        self._folder = folder
        self._config = config
        self._memory = {node: MemoryDisk() for node in nodes}
        self._cluster = ""
        """The cluster's id, once it is known."""
        self._open: dict[NodeId, LogStore] = {}
        self._writers: dict[NodeId, ThreadPoolExecutor] = {}

    def cluster_id(self, invent: Callable[[], str]) -> str:
        """The cluster's id: what the first disk remembers, or a new one, told to every disk.

        Every disk knows it durably before any node makes a group, so one that does not know it
        beside one that holds groups is no fresh one. Raises `ConfigError`, with every disk closed
        and none written, when disks are lost, of a cluster of another size (before any is made),
        or of different clusters: logs with the same terms and other entries.
        """
        self._cluster = ""
        for node in self._nodes:
            if self._folder is None or self._path(node).exists():
                self.open(node)
        size = str(len(self._nodes))
        refusal = (
            self._of_another_size(size) or self._of_different_clusters() or self._of_a_lost_disk()
        )
        if refusal:
            for node in self._nodes:
                self.close(node)
            raise ConfigError(refusal)
        stores = [self.open(node) for node in self._nodes]
        known = next(iter(self._remembered(CLUSTER_ID_KEY).values()), None)
        chosen = known or invent()
        for store in stores:
            if store.get_meta(CLUSTER_ID_KEY) is None or store.get_meta(NODES_KEY) is None:
                store.put_meta(CLUSTER_ID_KEY, chosen.encode())
                store.put_meta(NODES_KEY, size.encode())
                _sync(store)
        self._cluster = chosen
        return chosen

    def _remembered(self, key: str) -> dict[NodeId, str]:
        """What each open disk that knows it has under this key."""
        found = {node: store.get_meta(key) for node, store in self._open.items()}
        return {node: value.decode() for node, value in found.items() if value is not None}

    def _of_another_size(self, asked: str) -> str:
        for known in self._remembered(NODES_KEY).values():
            if known != asked:
                return (
                    f"{self._folder} is of a cluster of {known} nodes, not of {asked}; "
                    f"a cluster keeps its nodes for life"
                )
        return ""

    def _of_different_clusters(self) -> str:
        known = list(self._remembered(CLUSTER_ID_KEY).items())
        for node, cluster in known[1:]:
            first, expected = known[0]
            if cluster != expected:
                return (
                    f"{self._folder}/node-{node} is of another cluster ({cluster}) than "
                    f"node-{first} ({expected}); bring back the folder that belongs there"
                )
        return ""

    def _of_a_lost_disk(self) -> str:
        """A node that has forgotten its votes and its log must not take part as a fresh one: it
        would elect a leader without what it had acknowledged."""
        holding = [node for node in self._nodes if self.open(node).groups()]
        for node in self._nodes:
            if holding and self.open(node).get_meta(CLUSTER_ID_KEY) is None:
                return (
                    f"{self._folder}/node-{node} holds nothing, though node-{holding[0]} does; "
                    f"bring the lost folder back, or start the cluster with a new one"
                )
        return ""

    def open(self, node: NodeId) -> LogStore:
        """The node's store, opened if it is not. Raises `ConfigError`, with the store closed, when
        it does not know the cluster that runs: its folder was lost while the node was down."""
        store = self._open.get(node)
        if store is None:
            store = self._make(node)
            if self._cluster and not knows(self._cluster, store.get_meta(CLUSTER_ID_KEY)):
                store.close()
                raise ConfigError(
                    f"{self._folder}/node-{node} holds nothing of this cluster, and was made for "
                    f"it; bring the lost folder back, or start the cluster with a new one"
                )
            self._open[node] = store
        return store

    def _make(self, node: NodeId) -> LogStore:
        if self._folder is None:
            return MemoryStore(self._memory[node])
        from ottla.log.lmdb_store import LmdbStore  # Costs memory: only where it is used.

        durable = self._config.flush is not FlushPolicy.OFF
        return LmdbStore.open(self._path(node), node=node, sync=durable)

    def _path(self, node: NodeId) -> Path:
        assert self._folder is not None, "only asked of disks in a folder"
        return self._folder / f"node-{node}"

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
                _sync(store)
            store.close()

    def break_(self, node: NodeId, error: StoreError | None) -> None:
        """From the next one on syncs fail with `error`, or hang. Raises `ConfigError` for LMDB."""
        if self._folder is not None:
            raise ConfigError("only disks in memory can be broken; leave data_dir out")
        if error is None:
            self._memory[node].hold_syncs()
        else:
            self._memory[node].fail_syncs(error)

    def mend(self, node: NodeId) -> None:
        """What hangs goes on, what would have failed does not; a store that has failed stays so."""
        self._memory[node].heal()

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


def _sync(store: LogStore) -> None:
    """A whole sync, on this thread. Raises `StoreError`."""
    job = store.begin_sync()
    if job is not None:
        job.run()
        store.finish_sync(job)
