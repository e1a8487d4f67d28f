"""`Disks`: the disks of a cluster's nodes. They outlive the nodes that are killed on them.

Without a data folder a disk is a `MemoryDisk`; with one it is an LMDB environment per node, in
`node-1`, `node-2`..., each with a writer thread of its own (one of the only two uses of threads).
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
from ottla.broker.event_loop.native import Writer, make_lock
from ottla.broker.node import folders
from ottla.log.errors import StoreError
from ottla.log.memory_store import MemoryDisk, MemoryStore
from ottla.log.store import LogStore
from ottla.raft.types import NodeId

log = logging.getLogger("ottla")

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
    """See the module's text. `without`: nodes whose folders are not looked at."""

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
        """The cluster's id, once it is known."""
        self._open: dict[NodeId, LogStore] = {}
        self._writers: dict[NodeId, Writer] = {}
        self._opening = make_lock()
        """Folders are opened one after the other: two may be one by a link, and where one is bad
        the others are looked at."""

    async def cluster_id(self, invent: Callable[[], str], clockwork: MakeClockwork) -> str:
        """The cluster's id: what the first disk remembers, or a new one, told to every disk.

        Every disk knows it durably before any node makes a group, so one that does not know it
        beside one that holds groups is no fresh one. When every disk does, the folder of the whole
        cluster gets a note of it: from then on a node's folder that is gone is a lost one, also
        that of the only node.

        Folders are opened beside the loop, which goes on meanwhile: a long log takes its seconds.
        Raises `ConfigError`, with every disk closed and none written, when disks are damaged or
        lost, of a cluster of another size (before any is made), or of different clusters: logs with
        the same terms and other entries.
        """
        self._cluster = ""
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
        """The id that the disks know, empty if they are new. Raises `ConfigError`."""
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
        """What the folders hold, as far as they are open."""
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
        """Open every folder that is there, one after the other (two may be one by a link); why
        those cannot be that are not. One does not hide the next one."""
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
        """Nodes whose folders are there."""
        return [node for node in self._nodes if os.path.lexists(self._path(node))]

    def _remembered(self, key: str) -> dict[NodeId, str]:
        """What each open disk that knows it has under this key."""
        found = {node: store.get_meta(key) for node, store in self._open.items()}
        return {node: value.decode() for node, value in found.items() if value is not None}

    def _noted(self) -> str | None:
        """The cluster's id as the folder of the whole cluster names it: None without a note, empty
        when it is damaged. Raises `ConfigError` for one that could not be written again."""
        from ottla.log.note import read_fields

        try:
            fields = read_fields(self._base())
        except (StoreError, OSError) as error:
            why = f"its note cannot be read: {error}; put it back, or take it away if all the"
            raise ConfigError(f"{self._folder}: {why} nodes' folders are there") from error
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
        """As `open`, as work beside the node: to read a long log takes seconds, in which the other
        nodes go on."""
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
        from ottla.log.lmdb_store import LmdbStore  # Costs memory: only where it is used.

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
        """The thread in which the node's syncs run; in memory, only those that hang."""
        if node not in self._writers:
            self._writers[node] = Writer(f"ottla-disk-{node}")
        return self._writers[node]

    def close(self, node: NodeId, finish: Callable[[], None] = lambda: None) -> None:
        """A clean end: what is appended is synced, unless the disk has failed; the store closes.
        `finish` finishes a sync under way, once its thread has ended: who waited for it may have
        been cancelled."""
        self._join_writer(node)
        finish()
        store = self._open.get(node)
        if store is not None:
            with suppress(StoreError):  # The node has said so already.
                _sync(store)
            store.close()
            # Not sooner: whom it does not find here, `_look` looks at.
            self._open.pop(node, None)

    def break_(self, node: NodeId, error: StoreError | None) -> None:
        """From the next one on syncs fail with `error`, or hang. Raises `ConfigError` for LMDB."""
        if self._folder is not None:
            raise ConfigError("only disks in memory can be broken; leave data_dir out")
        if error is None:
            self._memory[node].hold_syncs()
        else:
            self._memory[node].fail_syncs(error)

    def hangs(self, node: NodeId) -> bool:
        """Whether a sync that begins now would not end."""
        return not self._memory[node].released.is_set()

    def mend(self, node: NodeId) -> None:
        """What hangs goes on, what would have failed does not; a store that has failed stays so."""
        self._memory[node].heal()

    async def crash(self, node: NodeId) -> None:
        """Signal 9: what is not synced is gone."""
        if self._folder is None and node in self._open:
            self._memory[node].crash()  # Syncs that hang end, and fail.
        self._join_writer(node)
        store = self._open.get(node)
        if store is not None and self._folder is not None:
            store.close()
        self._open.pop(node, None)

    def _join_writer(self, node: NodeId) -> None:
        """A transaction in the writer thread ends before its environment is closed."""
        writer = self._writers.pop(node, None)
        if writer is not None:
            writer.close()


def _unheard(_: str | None) -> None:
    """Work keeps its own errors."""


def _sync(store: LogStore) -> None:
    """A whole sync, on this thread. Raises `StoreError`."""
    job = store.begin_sync()
    if job is not None:
        job.run()
        store.finish_sync(job)
