"""What a node offers to its request handlers: the `Host` protocol.

Handlers (`broker/wire/api/`) use only this protocol; `broker/node/node.py` implements it. All calls
run on the thread of the node's event loop and return at once; results come by callback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.slices import Slices
from ottla.broker.images import BrokerImage, LeaderImage, TopicImage
from ottla.broker.turn.commands import Command, Decided
from ottla.broker.turn.tickets import Ticket
from ottla.broker.wire.remarks import Remarks
from ottla.broker.wire.searches import Searches
from ottla.log.types import Millis, ProducerEpoch, ProducerId
from ottla.raft.types import Entry, GroupId, LogIndex, Micros, NodeId

if TYPE_CHECKING:
    from ottla.broker.wire.ports import Port


class Listener(Protocol):
    """A node's listener for clients."""

    address: tuple[str, int]
    """Host and port where it listens, once started."""

    @property
    def connections(self) -> int:
        """How many clients are connected now."""

    async def start(self, port: Port) -> None:
        """Begin to listen. Raises `OSError`."""

    def stop(self, *, politely: bool = False) -> None:
        """Stop listening and close all connections: at once or, if `politely`, after sending the
        answers that are ready."""

    def cut_connections(self) -> int:
        """Close all connections at once and go on listening. Returns how many there were."""

    def pause(self) -> None:
        """Read nothing and send nothing until `resume`."""

    def resume(self) -> None:
        """Continue after `pause`."""


class ReplicaInbox(Protocol):
    """A partition's replica on this node, as a handler sees it: an inbox."""

    group: GroupId


class Host(Protocol):
    """A node, as a request handler sees it."""

    node: NodeId
    cluster_id: str
    config: ClusterConfig
    remarks: Remarks
    slices: Slices
    """Runs work that is too long for one iteration of the loop; handlers use `Call.run`."""
    searches: Searches
    """Searches stored batches, in slices."""

    def now(self) -> Micros:
        """The time of the monotonic clock."""

    def wall_ms(self) -> Millis:
        """The time of the wall clock, in ms since 1970."""

    def call_at(self, when: Micros, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` at `when`. Returns the function that cancels it."""

    def topics(self) -> Mapping[str, TopicImage]:
        """All topics by name, as far as this node has applied the controller's log."""

    def knows_all_topics(self) -> bool:
        """Whether a name that is not in `topics` is certainly not a topic. True only after this
        node has caught up with the controller's log, and while it hears the controller's leader."""

    def brokers(self, asked: Iterable[GroupId] = ()) -> Sequence[BrokerImage]:
        """The nodes to which a client may connect that asked about these groups; at least one."""

    def registered(self) -> Sequence[BrokerImage]:
        """Every node of the cluster that was ever started, running or not."""

    def controller(self) -> NodeId:
        """The leader of the controller group, or the last known one; 0 if none was ever known."""

    def leader(self, group: GroupId) -> LeaderImage:
        """The leader of a partition."""

    def replica(self, topic: str, partition: int) -> ReplicaInbox | None:
        """This node's replica of that partition; None if it has none."""

    def submit(self, replica: ReplicaInbox, ticket: Ticket) -> None:
        """Put a ticket into the replica's inbox; the replica takes a turn soon."""

    def read(self, group: GroupId, first: LogIndex, last: LogIndex, max_bytes: int) -> list[Entry]:
        """Committed entries `first..last` of a hosted replica: at least one, and as many as fit
        into `max_bytes`.

        Raises `ottla.log.errors.CompactedError` if they are compacted, `StoreError` if they cannot
        be read; then this node stops once the request is answered.
        """

    def control(self, command: Command, done: Decided, deadline: Micros) -> None:
        """Send `command` to the controller's leader, whichever node that is.

        `done(error, result)` is called once. REQUEST_TIMED_OUT: this node learned no outcome in
        time; the command may have been carried out, or may be later.
        """

    def new_producer_id(self, done: Callable[[ErrorCode, ProducerId, ProducerEpoch], None]) -> None:
        """Call `done` with a new producer id and epoch 0; with COORDINATOR_LOAD_IN_PROGRESS if this
        node has no block of ids."""


def absent_topic(host: Host) -> ErrorCode:
    """The error of Metadata for a name that is not in the catalog: the topic does not exist, or
    this node may not know it yet."""
    known = host.knows_all_topics()
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.LEADER_NOT_AVAILABLE


def absent_partition(host: Host) -> ErrorCode:
    """The error of all other APIs for it. A client that gets NOT_LEADER_OR_FOLLOWER asks again, and
    other nodes."""
    known = host.knows_all_topics()
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.NOT_LEADER_OR_FOLLOWER


def named_controller(host: Host, brokers: Sequence[BrokerImage]) -> NodeId:
    """The controller to name to clients. It must be one of `brokers`, or clients fail
    (K-CONTROLLER).

    It is the controller's leader, if this node knows it; else this node; else the first broker.
    """
    nodes = [broker.node for broker in brokers]
    return next((each for each in (host.controller(), host.node) if each in nodes), nodes[0])
