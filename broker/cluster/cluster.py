"""`Cluster`: a whole cluster in this process, for tests, demos and `ottla up`.

Two faces of one thing:

* `with Cluster(nodes=3) as cluster:` runs the cluster in a thread of its own, and every method
  blocks until it is done. This is for ordinary tests, and for clients with threads of their own.
* `async with Cluster(nodes=3) as cluster:` runs the cluster on the caller's event loop. Methods
  that take time are awaited.

`AsyncCluster` does the work; `Cluster` only hands calls over to its loop. Nodes are numbered from
1. Faults are exact: `kill` is signal 9 (the unsynced tail of the node's disk is lost), `pause` is
SIGSTOP, `isolate` cuts a node off from its peers while clients still reach it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import ParamSpec, Self, TypeVar, Unpack

from ottla.broker.arguments.addresses import Advertised
from ottla.broker.arguments.places import Folder
from ottla.broker.cluster.async_cluster import AsyncCluster
from ottla.broker.cluster.description import ClusterDescription
from ottla.broker.cluster.events import EventLog
from ottla.broker.cluster.faults import DiskFault, FaultName
from ottla.broker.config import ClusterConfig, Settings
from ottla.broker.counters import Counters
from ottla.broker.errors import NodeStateError
from ottla.broker.event_loop.lifecycle import NOT_OURS
from ottla.broker.event_loop.loop_thread import LoopThread
from ottla.broker.event_loop.native import make_lock
from ottla.broker.topics.topic import Topic

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Cluster:
    """A cluster of `nodes` brokers on real TCP ports of this machine.

    `data_dir` is a folder that keeps the logs, in LMDB, for the next start; without it they live in
    memory. The start creates `topics`, given as `Topic` or by name. `port` is that of node 1; node
    *i* listens on `port + i - 1`; 0 takes free ports. Nodes listen on `host`. `advertised` tells
    clients other addresses: `HOST:PORT` of node 1, or a different one for each node. Every field of
    `ClusterConfig` may be given as a keyword.

    `without_nodes` leaves out nodes whose folders in `data_dir` are damaged or lost. A majority of
    the nodes must be left.

    Raises `ConfigError` for invalid settings, `DataFolderError` (a `ConfigError`) if a node's
    folder is damaged or lost, `OSError` if a port is in use.

    >>> from ottla import Cluster
    >>> with Cluster(nodes=3) as cluster:
    ...     cluster.create_topic("orders", partitions=2)
    ...     sorted(cluster.describe().nodes)
    [1, 2, 3]
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertised: Advertised | None = None,
        data_dir: Folder | None = None,
        topics: Sequence[Topic | str] = (),
        without_nodes: Sequence[int] = (),
        config: ClusterConfig | None = None,
        **settings: Unpack[Settings],
    ):
        self._cluster = AsyncCluster(
            nodes,
            host=host,
            port=port,
            advertised=advertised,
            data_dir=data_dir,
            topics=topics,
            without_nodes=without_nodes,
            config=config,
            **settings,
        )
        self._lock = make_lock()
        self._thread: LoopThread | None = None
        self._process = 0
        """The id of the process in which the thread runs."""

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the cluster in its own thread, and return when it listens and has its leaders. If
        an interrupt (Ctrl-C, a test's timeout) comes before that, everything is stopped again."""
        thread = LoopThread(self._cluster.start, self._cluster.stop)
        try:
            return self._run(thread)
        except BaseException:
            self._end(thread)
            raise

    def _run(self, thread: LoopThread) -> Self:
        with self._lock:
            if self._thread is not None:
                if self._process != os.getpid():
                    raise NodeStateError(NOT_OURS)
                raise NodeStateError("the cluster runs already; stop it before it starts again")
            self._process, self._thread = os.getpid(), thread
        thread.run()
        return self

    def stop(self) -> None:
        """Stop every node and the thread. It is harmless to stop twice, from several threads (each
        call returns when everything has stopped), or in a forked child."""
        thread = self._thread
        if thread is not None and self._process == os.getpid():
            self._end(thread)

    def _end(self, thread: LoopThread) -> None:
        thread.end()
        with self._lock:
            if self._thread is thread:
                self._thread = None

    def _call(
        self,
        work: Callable[Given, Coroutine[object, None, Result]],
        *args: Given.args,
        **named: Given.kwargs,
    ) -> Result:
        thread = self._thread
        if thread is None:
            raise NodeStateError("the cluster is not running: use `with Cluster()`, or start()")
        if self._process != os.getpid():  # A fork copies no threads: nobody would ever answer.
            raise NodeStateError(NOT_OURS)
        return thread.call(partial(work, *args, **named))

    def _ask(
        self, question: Callable[Given, Result], *args: Given.args, **named: Given.kwargs
    ) -> Result:
        async def answer() -> Result:
            return question(*args, **named)

        return self._call(answer)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except NodeStateError:
            raise  # It runs already, for another caller, and goes on.
        except BaseException:
            self.stop()  # An interrupt may come after the start.
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncCluster:
        await self._cluster.start()
        return self._cluster

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._cluster.stop()

    # --- what it is ---------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every node, comma-separated, as Kafka clients want it. Raises
        `NodeStateError` before the start.

        >>> with Cluster(nodes=2) as cluster:
        ...     cluster.bootstrap_servers.count(":")
        2
        """
        return self._cluster.bootstrap_servers

    @property
    def counters(self) -> Counters:
        """Counts of what has happened since the start.

        >>> with Cluster(nodes=1) as cluster:
        ...     cluster.create_topic("t")
        ...     cluster.counters.leaderships
        1
        """
        return self._cluster.counters

    @property
    def events(self) -> EventLog:
        """What changed since the start, oldest first: faults asked for, roles, truncations.

        >>> with Cluster(nodes=1) as cluster:
        ...     cluster.pause(1)
        ...     cluster.resume(1)
        ...     [event.kind for event in cluster.events][-2:]
        ['pause', 'resume']
        """
        return self._cluster.events

    @property
    def addresses(self) -> Mapping[int, tuple[str, int]]:
        """Host and port of each node. Raises `NodeStateError` before the start.

        >>> with Cluster(nodes=2) as cluster:
        ...     sorted(cluster.addresses)
        [1, 2]
        """
        return self._cluster.addresses

    def describe(self) -> ClusterDescription:
        """The state of the cluster: nodes, topics, leaders, terms, offsets, producers, counters.

        >>> with Cluster(nodes=1) as cluster:
        ...     cluster.create_topic("t")
        ...     cluster.describe().topics["t"][0].leader
        1
        """
        return self._ask(self._cluster.describe)

    # --- topics -------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int | None = None,
        configs: Mapping[str, str | float] | None = None,
        assignment: Sequence[Sequence[int]] | None = None,
        timeout: float = 10.0,
    ) -> None:
        """Create a topic and wait until every partition has a leader that accepts produce requests.

        `assignment[p]` names the nodes of partition *p*, its preferred leader first. Raises
        `ConfigError` for a value of the wrong type, `RequestFailedError` with Kafka's code, or
        `ClusterTimeoutError` after `timeout` seconds.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.create_topic("orders", partitions=3, configs={"min.insync.replicas": 2})
        ...     all(cluster.leader("orders", p) for p in range(3))
        True
        """
        self._call(
            self._cluster.create_topic,
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=configs,
            assignment=assignment,
            timeout=timeout,
        )

    def delete_topic(self, name: str, *, timeout: float = 10.0) -> None:
        """Delete a topic. Raises `RequestFailedError` if there is no topic of this name.

        >>> with Cluster(nodes=1) as cluster:
        ...     cluster.create_topic("t")
        ...     cluster.delete_topic("t")
        ...     list(cluster.describe().topics)
        []
        """
        self._call(self._cluster.delete_topic, name, timeout=timeout)

    def leader(self, topic: str, partition: int = 0, *, timeout: float = 10.0) -> int:
        """The node that leads a partition and serves it; waits for one up to `timeout` seconds.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.create_topic("t")
        ...     cluster.leader("t", 0) in (1, 2, 3)
        True
        """
        return self._call(self._cluster.leader, topic, partition, timeout=timeout)

    # --- faults -------------------------------------------------------------------------------

    def kill(self, node: int) -> None:
        """Signal 9: the node dies at once, and what its disk had not synced is lost.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.create_topic("t")
        ...     old = cluster.leader("t")
        ...     cluster.kill(old)
        ...     cluster.leader("t") != old
        True
        """
        self._call(self._cluster.kill, node)

    def restart(self, node: int) -> None:
        """Start a node again on its disk and its port; a running one is stopped cleanly first.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.kill(2)
        ...     cluster.restart(2)
        ...     cluster.describe().nodes[2].state
        'running'
        """
        self._call(self._cluster.restart, node)

    def pause(self, node: int) -> None:
        """SIGSTOP: the node keeps its connections and does nothing.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.pause(1)
        ...     cluster.describe().nodes[1].state
        'paused'
        """
        self._ask(self._cluster.pause, node)

    def resume(self, node: int) -> None:
        """SIGCONT: the node goes on, and handles everything that arrived meanwhile, in order.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.pause(1)
        ...     cluster.resume(1)
        ...     cluster.describe().nodes[1].state
        'running'
        """
        self._ask(self._cluster.resume, node)

    def isolate(self, node: int) -> None:
        """Cut a node off from its peers; clients still reach it.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.create_topic("t")
        ...     cluster.isolate(cluster.leader("t"))
        ...     cluster.heal()
        """
        self._ask(self._cluster.isolate, node)

    def heal(self, node: int | None = None) -> None:
        """End the isolation of `node`, or of all.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.isolate(3)
        ...     cluster.heal(3)
        """
        self._ask(self._cluster.heal, node)

    def cut_connections(self, node: int) -> int:
        """Close every client connection of a node; answers not yet sent are lost. Returns how many.

        >>> with Cluster(nodes=1) as cluster:
        ...     cluster.cut_connections(1)
        0
        """
        return self._ask(self._cluster.cut_connections, node)

    def break_disk(self, node: int, fault: DiskFault | FaultName) -> None:
        """From the next sync on, the node's disk hangs or fails. `fault` may be given by its name.
        Only logs in memory can break: with a `data_dir` it raises `ConfigError`.

        >>> from ottla import DiskFault, OttlaError
        >>> with Cluster(nodes=1) as cluster:
        ...     cluster.break_disk(1, DiskFault.FULL)
        ...     try:
        ...         cluster.create_topic("t")
        ...     except OttlaError:
        ...         cluster.describe().nodes[1].error
        'no room on the disk'
        """
        self._ask(self._cluster.break_disk, node, fault)

    def mend_disk(self, node: int) -> None:
        """Let hanging syncs go on and later syncs succeed. A failed node needs `restart`.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.break_disk(2, "stalled")
        ...     cluster.mend_disk(2)
        """
        self._ask(self._cluster.mend_disk, node)

    def transfer_leadership(
        self, topic: str, partition: int, to: int, *, timeout: float = 10.0
    ) -> None:
        """Transfer the leadership of a partition to another replica (thesis 3.10), and wait for it.

        Raises `ClusterTimeoutError` when it does not come to lead within `timeout` seconds.

        >>> with Cluster(nodes=3) as cluster:
        ...     cluster.create_topic("t")
        ...     old = cluster.leader("t")
        ...     cluster.transfer_leadership("t", 0, to=old % 3 + 1)
        ...     cluster.leader("t") == old % 3 + 1
        True
        """
        self._call(self._cluster.transfer_leadership, topic, partition, to, timeout=timeout)
