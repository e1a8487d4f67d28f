"""`Node`: one broker of the cluster, from its disk to its listener.

A node has a store, a `Runner` that drives its replicas, a replica of the controller group (every
node hosts one), a `Listener` for clients, and the heartbeats that vouch for leaders. It is the
`Host` of the request handlers.

A new node serves nobody. From `join` on it takes part; `stop` ends it. A new `Node` on the same
disk is a restart. Between `pause` and `resume` nothing happens in the node.

The node carries out what the controller's log says: after each commit it opens the replicas that it
was given and drops those of deleted topics (`Hosting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import cast

from ottla.broker.config import ClusterConfig
from ottla.broker.controller.client import ControlClient, ControlRequest, ControlResponse
from ottla.broker.controller.controller import CONTROLLER_GROUP, Controller
from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.driver.runner import Runner
from ottla.broker.driver.sender import Transport
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.clockwork import Cancel, Clockwork
from ottla.broker.event_loop.scheduler import Scheduler
from ottla.broker.heartbeats.heartbeats import Beat, BeatAck, Heartbeats
from ottla.broker.images import BrokerImage, LeaderImage, TopicImage
from ottla.broker.node.directory import Directory
from ottla.broker.node.hosting import Hosting
from ottla.broker.node.inspection import NodeView
from ottla.broker.node.producer_ids import ProducerIds
from ottla.broker.node.readiness import CatchingUp
from ottla.broker.node.replica_factory import ReplicaFactory
from ottla.broker.turn.commands import Command, Decided
from ottla.broker.turn.tickets import ControlTicket, Ticket
from ottla.broker.turn.watcher import Watcher
from ottla.broker.wire.host import Host, Listener, ReplicaInbox
from ottla.broker.wire.remarks import Remarks
from ottla.broker.wire.searches import Searches
from ottla.log.errors import StoreError
from ottla.log.store import LogStore
from ottla.log.types import ProducerEpoch, ProducerId
from ottla.raft.types import Entry, GroupId, LogIndex, Matched, Micros, NodeId

PATIENCE_BEATS = 5
"""With at least this many heartbeats in an election timeout, acknowledgements may wait for the next
heartbeat."""
HEARD_TIMEOUTS = 2
"""A silent node is still named to clients for this many election timeouts."""


def _unheard(*_: object) -> None:
    """The default callback: does nothing."""


class Node:
    """See the module's docstring. All methods run on the loop's thread."""

    hosting_type: type[Hosting] = Hosting

    def __init__(
        self,
        node: NodeId,
        config: ClusterConfig,
        *,
        cluster_id: str,
        nodes: Sequence[NodeId],
        addresses: Mapping[NodeId, tuple[str, int]],
        store: LogStore,
        network: Transport,
        listen: Callable[[Host], Listener],
        scheduler: Scheduler,
        clockwork: Clockwork,
        factory: ReplicaFactory,
    ):
        self.node = node
        self.config = config
        self.cluster_id = cluster_id
        self.remarks = Remarks()
        self.store = store
        self.clockwork = clockwork
        self.now, self.wall_ms, self.call_at = clockwork.now, clockwork.wall_ms, clockwork.call_at
        self.slices = scheduler.slices
        self.searches = Searches(clockwork.call_soon)
        self.server = self._make_listener(listen)
        self.failed: Exception | None = None
        self._stop_stopping: Cancel = _unheard
        self._nodes = tuple(nodes)
        self._addresses = addresses
        self._network = network
        self._started: Micros = clockwork.now()
        self._controller_leader: NodeId = 0
        self._held: list[Callable[[], None]] = []  # calls that wait for `resume`, in order
        self.beats = self._make_beats()
        self.factory = factory
        self.runner = self._make_runner(scheduler)
        self._directory = self._make_directory()
        self.on_failed: Callable[[Node, Exception], None] = _unheard
        """Called when the node has stopped by itself."""
        self.controller_machine = self._make_controller()
        self._hosting = self._make_hosting()
        self.control_client = self._make_control_client()
        self._catching_up = self._make_catching_up()
        self._between_nodes = self._make_takers()
        self._producer_ids = ProducerIds(node, control=self.control, now=self.now)

    def _make_listener(self, listen: Callable[[Host], Listener]) -> Listener:
        """Make the listener, paused: it serves clients only once the catalog is known."""
        listener = listen(self)
        listener.pause()
        return listener

    def _make_beats(self) -> Heartbeats:
        return Heartbeats(
            self.node,
            [each for each in self._nodes if each != self.node],
            self.config.heartbeat_ms * 1000,
            incarnation=self._started,  # each restart must have a larger one
            now=self._started,
            acks_ride=PATIENCE_BEATS * self.config.heartbeat_ms <= self.config.election_timeout_ms,
        )

    def _make_runner(self, scheduler: Scheduler) -> Runner:
        runner = Runner(
            self.node,
            self.config,
            store=self.store,
            sender=self._network,
            beats=self.beats,
            scheduler=scheduler,
            clockwork=self.clockwork,
            looks=self.factory.looks,
        )
        runner.report_to(failed=self._broke, role=self._role_changed, applied=self._applied)
        return runner

    def _make_directory(self) -> Directory:
        return Directory(
            self.node,
            self._nodes,
            self.runner,
            self.beats,
            HEARD_TIMEOUTS * self.config.election_timeout_ms * 1000,
        )

    def _make_controller(self) -> Controller:
        def unheard() -> Sequence[NodeId]:
            silent, addresses = self._directory.silent(self.now()), self._addresses
            return [each for each in self._nodes if each in silent or each not in addresses]

        return self.factory.make_controller(self.cluster_id, self._nodes, unheard)

    def _make_hosting(self) -> Hosting:
        return self.hosting_type(
            self.node,
            self.controller_machine,
            owner=self,
            runner=self.runner,
            factory=self.factory,
            slices=self.slices,
            now=self.now,
        )

    def _make_control_client(self) -> ControlClient:
        return ControlClient(
            self.node,
            self._started,
            now=self.now,
            call_at=self._call_awake_at,
            submit=self._submit_control,
            send=lambda to, message: self._network.send(self.node, to, message),
            leader=lambda: self.runner.hosted_replicas[CONTROLLER_GROUP].replica.leadership,
        )

    def _make_catching_up(self) -> CatchingUp:
        return CatchingUp(
            self.config,
            now=self.now,
            call_at=self._call_awake_at,
            control=self.control,
            serve=self.server.resume,
        )

    def _make_takers(self) -> Mapping[type, Callable[[Matched], None]]:
        """The functions for messages that are not of a Raft group, by class."""
        return {
            Beat: self.runner.on_beat,
            BeatAck: self.runner.on_beat_ack,
            ControlRequest: self.control_client.serve,
            ControlResponse: self.control_client.answered,
        }

    # --- seen from outside --------------------------------------------------------------------

    def inspect(self) -> NodeView:
        """A read-only view of this node."""
        return NodeView(self.runner, self.controller_machine, self.beats, self.now)

    def watch(self, watcher: Watcher) -> None:
        """Report changes of this node's replicas to `watcher`, from now on."""
        self.runner.watch(watcher)

    # --- life ---------------------------------------------------------------------------------

    def join(self) -> None:
        """Take part from now on: receive messages and hold elections.

        Clients are served once this node has caught up with the controller's log, or after a time
        (`CatchingUp`): before that it would not know existing topics.
        """
        self._directory.begin(self.now())
        self._network.attach(self.node, self._receive)
        self._catching_up.begin()
        replica = self.factory.controller(
            self.controller_machine, self._nodes, self.now(), self.runner.write
        )
        self.control_client.begin(replica.core.last_index)
        self.runner.add(replica, urgent=True)

    @property
    def joined(self) -> bool:
        """Whether it takes part in the cluster."""
        return CONTROLLER_GROUP in self.runner.hosted_replicas

    def stop(self) -> None:
        """Stop: no more turns, no listener, no messages. The store stays open."""
        self.server.stop()
        self._leave()

    def _leave(self) -> None:
        self._network.detach(self.node)
        self.slices.drop(self)
        self._catching_up.leave()
        self._stop_stopping()
        self.runner.close()
        self.control_client.close()

    def pause(self) -> None:
        """Stop doing anything, like a stopped process: nothing is read, done or sent."""
        self.runner.pause()
        self.slices.hold(self)
        self.server.pause()

    def resume(self) -> None:
        """Continue after `pause`: handle everything that arrived meanwhile, in order."""
        self.runner.resume()
        self.slices.release(self)
        if self._catching_up.serving:
            self.server.resume()
        held, self._held = self._held, []
        for call in held:
            try:
                call()
            except Exception as error:  # noqa: BLE001 - the other calls must be made, too
                self.runner.broken(error)

    def _call_awake_at(self, when: Micros, call: Callable[[], None]) -> Cancel:
        return self.call_at(when, partial(self._when_awake, call))

    def _when_awake(self, call: Callable[[], None]) -> None:
        if self.runner.paused:
            self._held.append(call)
        else:
            call()

    def _broke(self, error: Exception) -> None:
        if self.failed is None:
            self.failed = error
            self._leave()  # answers all open tickets
            self.server.stop(politely=True)
            self.on_failed(self, error)

    # --- other nodes --------------------------------------------------------------------------

    def _receive(self, sender: NodeId, message: object) -> None:
        """Take a message. It may arrive in the middle of the sender's turn, so an error here must
        stop only this node."""
        take = self._between_nodes.get(message.__class__, self._take)
        try:
            if self.runner.paused:
                self._held.append(partial(self._receive, sender, message))
            else:
                take(message)
        except Exception as error:  # noqa: BLE001 - the sender must go on
            self.runner.broken(error)

    def _take(self, message: Matched) -> None:
        """Take a message of a Raft group."""
        if not self.runner.receive(message):
            self._hosting.keep_early(message)

    # --- what the controller decided ----------------------------------------------------------

    def _applied(self, hosted: HostedReplica) -> None:
        if hosted.group != CONTROLLER_GROUP:
            return
        self._hosting.applied()
        self.control_client.applied(self.controller_machine.applied)

    def _role_changed(self, hosted: HostedReplica) -> None:
        if hosted.group == CONTROLLER_GROUP:
            self.control_client.leader_moved()
            if hosted.soft.leader:
                self._controller_leader = hosted.soft.leader
                self._catching_up.controller_heard()
            else:
                self._catching_up.controller_lost()

    def _submit_control(self, ticket: ControlTicket) -> None:
        self.runner.submit(self.runner.hosted_replicas[CONTROLLER_GROUP], ticket)

    # --- host of the handlers -----------------------------------------------------------------

    def topics(self) -> Mapping[str, TopicImage]:
        """All topics by name, as far as this node has applied the controller's log."""
        return self.controller_machine.topics

    def knows_all_topics(self) -> bool:
        """See `Host`."""
        return self._catching_up.informed

    def brokers(self, asked: Iterable[GroupId] = ()) -> Sequence[BrokerImage]:
        """The nodes to which a client may connect that asked about these groups (`Directory`)."""
        informed = self.knows_all_topics()
        named = self._directory.named(asked, self.now(), informed=informed)
        at = self._addresses  # a node that was left out at the start has no address
        return [BrokerImage(each, *at[each]) for each in named if each in at]

    def registered(self) -> Sequence[BrokerImage]:
        """See `Host`."""
        return [BrokerImage(each, *at) for each, at in sorted(self._addresses.items())]

    def controller(self) -> NodeId:
        """The leader of the controller group, or the last known one; 0 if none was ever known."""
        return self._controller_leader

    def leader(self, group: GroupId) -> LeaderImage:
        """The leader of a partition, as far as this node knows."""
        placed = self.controller_machine.partition_of(group)
        replicas = () if placed is None else placed[1].replicas
        return self._directory.leader(group, replicas, self.now())

    def replica(self, topic: str, partition: int) -> ReplicaInbox | None:
        """This node's replica of that partition; None if it has none."""
        image = self.controller_machine.topics.get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        return self.runner.hosted_replicas.get(image.partitions[partition].group)

    def submit(self, replica: ReplicaInbox, ticket: Ticket) -> None:
        """Put a ticket into the replica's inbox; the replica takes a turn soon."""
        self.runner.submit(cast(HostedReplica, replica), ticket)

    def read(self, group: GroupId, first: LogIndex, last: LogIndex, max_bytes: int) -> list[Entry]:
        """Committed entries of a hosted replica (see `Host`). If the store cannot read them, the
        node stops."""
        try:
            return self.store.read(group, first, last, max_bytes)
        except StoreError as error:
            # Stop after the present callback, so that the request is answered first. Plan it only
            # once: further failing reads must not delay it.
            if self._stop_stopping is _unheard:
                self._stop_stopping = self._call_awake_at(0, partial(self.runner.broken, error))
            raise

    def control(self, command: Command, done: Decided, deadline: Micros) -> None:
        """Send `command` to the controller's leader, whichever node that is (see `Host`)."""
        self.control_client.request(command, done, deadline)

    def new_producer_id(self, done: Callable[[ErrorCode, ProducerId, ProducerEpoch], None]) -> None:
        """Call `done` with a new producer id and epoch 0 (see `Host`)."""
        self._producer_ids.hand_out(done)
