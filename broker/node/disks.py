"""`Disks`: the disks of a cluster's nodes. A disk survives when its node is killed.

Without a data folder a disk is a `MemoryDisk`. With one it is an LMDB environment per node, in
`node-1`, `node-2`..., each with its own writer thread (one of the only two uses of threads).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ottla.broker.config import ClusterConfig, FlushPolicy
from ottla.broker.errors import ConfigError
from ottla.broker.event_loop.clockwork import Clockwork, MakeClockwork
from ottla.broker.event_loop.collecting import nothing_collected
from ottla.broker.event_loop.descriptors import OF_A_NODE, check_descriptors
from ottla.broker.event_loop.native import Writer, make_lock
from ottla.broker.node import folders
from ottla.log.errors import StoreError
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.store import LogStore
from ottla.raft.types import NodeId

log = logging.getLogger("ottla")

CLUSTER_ID_KEY = "cluster-id"
NODES_KEY = "nodes"
"""How many nodes the cluster has. The number never changes, because the voters are fixed."""


def knows(cluster: str, told: bytes | None) -> bool:
    """Whether a disk with the value `told` under `CLUSTER_ID_KEY` belongs to this cluster.

    If not, it has lost the node's votes and log, or never had any, so no node may take part with it
    (sim-S35).
    """
    return told is not None and told.decode() == cluster


class Disks:
    """See the module's docstring. `without`: nodes whose folders are not opened."""

    def __init__(
        self,
        nodes: Sequence[NodeId],
        folder: Path | None,
        config: ClusterConfig,
        without: Sequence[NodeId] = (),
    ):
        self._size = len(nodes)
        self._nodes = [node for node in nodes if node not in without]
        self._without = without
        self._folder = folder
        self._config = config
        self._memory = {node: MemoryDisk() for node in nodes}
        self._cluster = ""
        """The id of the cluster; empty until it is known."""
        self._open: dict[NodeId, LogStore] = {}
        self._writers: dict[NodeId, Writer] = {}
        self._opening = make_lock()
        """Folders are opened one after the other: two may be one by a link, and where one is bad
        the others are looked at."""

    async def cluster_id(self, invent: Callable[[], str], clockwork: MakeClockwork) -> str:
        """The id of the cluster: the one that the disks have, or a new one, written to every disk.

        Every disk has the id durably before any node creates a group. So if a disk without the id
        is beside a disk with groups, it is not new but lost. When every disk has the id, the folder
        of the whole cluster gets a note of it. From then on a missing folder of a node is a lost
        one, also that of a single node.

        Folders are opened in threads, while the loop goes on, because a long log takes seconds.
        Raises `ConfigError`, with all disks closed and none written, if disks are damaged or lost,
        belong to a cluster of another size, or belong to different clusters; `OSError` with advice
        if the process may not open what the nodes need.
        """
        self._cluster = ""
        check_descriptors(OF_A_NODE * len(self._nodes))
        try:
            known = await self._known_id(clockwork)
        except BaseException:
            for node in self._nodes:
                self.close(node)
            raise
        size = str(self._size)
        chosen = known or invent()
        for node in self._nodes:
            store = self.open(node)
            if store.get_meta(CLUSTER_ID_KEY) is None or store.get_meta(NODES_KEY) is None:
                store.put_meta(CLUSTER_ID_KEY, chosen.encode())
                store.put_meta(NODES_KEY, size.encode())
                _sync(store)
        self._note_down(chosen)
        self._cluster = chosen
        return chosen

    async def _known_id(self, clockwork: MakeClockwork) -> str:
        """The id that the disks have; empty if they are new. Raises `ConfigError`."""
        if self._folder is None:
            for node in self._nodes:
                self.open(node)
            return next(iter(self._remembered(CLUSTER_ID_KEY).values()), "")
        note = self._noted()
        seen = self._seen(await self._open_all(clockwork), note)
        seen.check()
        if len(seen.ids) < len(self._nodes) and self._without:
            raise ConfigError(
                f"{self._folder} is new; a cluster begins with all its nodes: leave out "
                f"without_nodes"
            )
        if note == "":
            log.warning(
                "%s: its note, ottla.json, could not be read; the nodes' folders are good, and it "
                "is written again",
                self._folder,
            )
        return seen.cluster

    def _seen(self, errors: Mapping[NodeId, Exception], note: str | None) -> folders.Seen:
        """What the open folders contain."""
        return folders.Seen(
            folder=self._base(),
            total=self._size,
            without=self._without,
            nodes=self._nodes,
            errors=errors,
            ids=self._remembered(CLUSTER_ID_KEY),
            sizes=self._remembered(NODES_KEY),
            holding=[node for node, store in self._open.items() if store.groups()],
            note=note,
        )

    async def _open_all(self, clockwork: MakeClockwork) -> dict[NodeId, Exception]:
        """Open every folder that exists, one after the other (by a link, two may be the same).
        Returns the errors of folders that cannot be opened; all are tried."""
        errors: dict[NodeId, Exception] = {}

        def work(node: NodeId) -> None:
            try:
                self._open[node] = self._make(node)
            except Exception as error:  # noqa: BLE001 - raised below
                errors[node] = error

        for node in self._there():
            await clockwork(self.writer(node)).work(partial(work, node), _unheard).wait()
        for error in errors.values():
            if not isinstance(error, StoreError | OSError):
                raise error
        return errors

    def _there(self) -> list[NodeId]:
        """The nodes whose folders exist."""
        return [node for node in self._nodes if os.path.lexists(self._path(node))]

    def _remembered(self, key: str) -> dict[NodeId, str]:
        """The value under this key on each open disk that has one."""
        found = {node: store.get_meta(key) for node, store in self._open.items()}
        return {node: value.decode() for node, value in found.items() if value is not None}

    def _noted(self) -> str | None:
        """The cluster's id in the note of the whole cluster's folder. None: there is no note;
        empty: it is damaged. Raises `ConfigError` if it cannot be read."""
        from ottla.log.note import read_fields

        try:
            fields = read_fields(self._base())
        except (StoreError, OSError) as error:
            why = f"its note cannot be read: {error}; restore it, or delete it if the folders of"
            raise ConfigError(f"{self._folder}: {why} all nodes are there") from error
        if fields is None:
            return None
        named = fields.get("cluster")
        return named if isinstance(named, str) else ""

    def _note_down(self, cluster: str) -> None:
        from ottla.log.note import write_fields

        if self._folder is not None and self._noted() != cluster:
            try:
                write_fields(self._folder, {"cluster": cluster})
            except OSError as error:
                raise ConfigError(f"{self._folder}: {error}") from error

    def open(self, node: NodeId) -> LogStore:
        """The node's store, opened if it is not. Raises `DataFolderError`, with the store closed,
        when its folder is damaged, or does not know the cluster that runs: it was lost while the
        node was down."""
        with self._opening:
            store = self._open.get(node)
            return self._open_it(node) if store is None else store

    def _open_it(self, node: NodeId) -> LogStore:
        if self._cluster and self._folder is not None and not os.path.lexists(self._path(node)):
            raise self._refused(node, None)
        try:
            store = self._make(node)
        except (StoreError, OSError) as error:
            raise self._refused(node, error) from error
        named = store.get_meta(CLUSTER_ID_KEY)
        if self._cluster and not knows(self._cluster, named):
            store.close()
            raise self._refused(node, named)
        self._open[node] = store
        return store

    def _refused(self, node: NodeId, found: Exception | bytes | None) -> folders.DataFolderError:
        """Why one folder is not opened: the error, or which other cluster it knows, if any. The
        others are looked at, too: the advice hangs on how many are good, and those of nodes that
        are down may be as bad as this one."""
        looks = {each: self._look(each) for each in self._nodes if each != node}
        looks = {node: found, **looks}
        ids = {each: it.decode() for each, it in looks.items() if isinstance(it, bytes)}
        seen = folders.Seen(
            folder=self._base(),
            total=self._size,
            without=self._without,
            nodes=list(looks),
            errors={each: it for each, it in looks.items() if isinstance(it, Exception)},
            ids=ids,
            sizes={},
            holding=list(ids),
            note=self._cluster or None,
        )
        return seen.refusal()

    def _look(self, node: NodeId) -> Exception | bytes | None:
        """What the folder of another node says of the cluster, or why it cannot: in a start, and
        where the node runs, it has been looked at, and only may have gone since."""
        from ottla.log.note import check_is_there

        path = self._path(node)
        try:
            if node in self._open:
                check_is_there(path)
                return self._cluster.encode()
            if not self._cluster or not os.path.lexists(path):
                return None
            store = self._make(node)
        except (StoreError, OSError) as error:
            return error
        named = store.get_meta(CLUSTER_ID_KEY)
        store.close()
        return named

    async def opened(self, node: NodeId, clockwork: Clockwork) -> LogStore:
        """As `open`, but in a thread, because reading a long log takes seconds, in which other
        nodes must go on."""
        if self._folder is None or node in self._open:
            return self.open(node)
        errors: list[Exception] = []

        def work() -> None:
            try:
                self.open(node)
            except Exception as error:  # noqa: BLE001 - raised where it is awaited
                errors.append(error)

        await clockwork.work(work, _unheard).wait()
        if errors:
            raise errors[0]
        return self._open[node]

    def _base(self) -> Path:
        assert self._folder is not None, "disks in memory are always to be opened"
        return self._folder

    def _make(self, node: NodeId) -> LogStore:
        if self._folder is None:
            return MemoryStore(self._memory[node])
        from ottla.log.lmdb_store import LmdbStore  # here, because it takes memory

        durable = self._config.flush is not FlushPolicy.OFF
        with nothing_collected():  # of the entries that stay in memory
            return LmdbStore.open(
                self._path(node),
                node=node,
                sync=durable,
                cache_bytes=self._config.entry_cache_bytes,
            )

    def _path(self, node: NodeId) -> Path:
        return self._base() / f"node-{node}"

    def writer(self, node: NodeId) -> Writer:
        """The thread for the node's syncs; with a disk in memory, only for syncs that hang."""
        if node not in self._writers:
            self._writers[node] = Writer(f"ottla-disk-{node}")
        return self._writers[node]

    def close(self, node: NodeId, finish: Callable[[], None] = lambda: None) -> None:
        """Close the node's store cleanly: everything appended is synced, unless the disk has
        failed. `finish` is called when the writer thread has ended, and finishes a sync that was
        running (the task that waited for it may have been cancelled)."""
        self._join_writer(node)
        finish()
        store = self._open.get(node)
        if store is not None:
            with suppress(StoreError):  # the node has reported it already
                _sync(store)
            store.close()
            # Not sooner: whom it does not find here, `_look` looks at.
            self._open.pop(node, None)

    def break_(self, node: NodeId, error: StoreError | None) -> None:
        """From now on syncs fail with `error`; None: they hang. Raises `ConfigError` for LMDB."""
        if self._folder is not None:
            raise ConfigError(
                "break_disk needs disks in memory; start the cluster without data_dir"
            )
        if error is None:
            self._memory[node].hold_syncs()
        else:
            self._memory[node].fail_syncs(error)

    def hangs(self, node: NodeId) -> bool:
        """Whether a sync that begins now would not end."""
        return not self._memory[node].released.is_set()

    def mend(self, node: NodeId) -> None:
        """Syncs that hang go on, and later ones succeed. A store that has failed stays failed."""
        self._memory[node].heal()

    async def crash(self, node: NodeId) -> None:
        """The node was killed (as by signal 9): what is not synced is lost."""
        if self._folder is None and node in self._open:
            self._memory[node].crash()  # syncs that hang end, and fail
        self._join_writer(node)
        store = self._open.get(node)
        if store is not None and self._folder is not None:
            store.close()
        self._open.pop(node, None)

    def _join_writer(self, node: NodeId) -> None:
        """Wait for the writer thread, so that its transaction ends before the store is closed."""
        writer = self._writers.pop(node, None)
        if writer is not None:
            writer.close()


def _unheard(_: str | None) -> None:
    """Ignore the outcome: the work keeps its own errors."""


def _sync(store: LogStore) -> None:
    """Do a whole sync on this thread. Raises `StoreError`."""
    job = store.begin_sync()
    if job is not None:
        job.run()
        store.finish_sync(job)
