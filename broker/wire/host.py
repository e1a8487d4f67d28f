"""What a node offers to its request handlers: the `Host` protocol.

Handlers (`broker/wire/api/`) are written against this page and nothing else; `broker/node/node.py`
provides it. All calls run on the node's event loop thread and return at once; answers come by
callback.
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
    """Where the clients of a node come in."""

    address: tuple[str, int]
    """Where it listens, once started."""

    @property
    def connections(self) -> int:
        """Clients connected now."""

    async def start(self, port: Port) -> None:
        """Listen. Raises `OSError`."""

    def stop(self, *, politely: bool = False) -> None:
        """Stop listening and drop every client: at once, or with what has been answered."""

    def cut_connections(self) -> int:
        """Drop every client at once, and go on listening; returns how many there were."""

    def pause(self) -> None:
        """Read nothing and send nothing until `resume`."""

    def resume(self) -> None:
        """Go on where `pause` stopped."""


class ReplicaInbox(Protocol):
    """A partition's replica on this node, as a handler sees it: an inbox."""

    group: GroupId


class Host(Protocol):
    """A node, seen by a request handler."""

    node: NodeId
    cluster_id: str
    config: ClusterConfig
    remarks: Remarks
    slices: Slices
    """For what one turn of the loop has no room for; handlers use `Call.run`."""
    searches: Searches
    """Looks into stored batches, in slices."""

    def now(self) -> Micros:
        """Monotonic clock."""

    def wall_ms(self) -> Millis:
        """Wall clock, ms since 1970."""

    def call_at(self, when: Micros, call: Callable[[], None]) -> Callable[[], None]:
        """Run `call` at `when`; returns the function that cancels it."""

    def topics(self) -> Mapping[str, TopicImage]:
        """All topics by name, as far as this node has applied the controller's log."""

    def knows_all_topics(self) -> bool:
        """Whether a name that is not among `topics` is no topic's: not before this node has known
        all that the controller had decided, and only while it hears the controller's leader."""

    def brokers(self, asked: Iterable[GroupId] = ()) -> Sequence[BrokerImage]:
        """The nodes a client may turn to that asked about these groups: never none."""

    def registered(self) -> Sequence[BrokerImage]:
        """Every node of the cluster that was ever started, up or not."""

    def controller(self) -> NodeId:
        """Leader of the controller group; the last known one, 0 before there was any."""

    def leader(self, group: GroupId) -> LeaderImage:
        """Who leads a partition."""

    def replica(self, topic: str, partition: int) -> ReplicaInbox | None:
        """The replica of that partition on this node; None when it has none."""

    def submit(self, replica: ReplicaInbox, ticket: Ticket) -> None:
        """Put a command into the replica's inbox; it takes its turn soon."""

    def read(self, group: GroupId, first: LogIndex, last: LogIndex, max_bytes: int) -> list[Entry]:
        """Committed entries `first..last` of a hosted replica: at most `max_bytes`, at least one.

        Raises `ottla.log.errors.CompactedError` when they are gone; `StoreError` when they cannot
        be read, and then this node stops as soon as that has been answered.
        """

    def control(self, command: Command, done: Decided, deadline: Micros) -> None:
        """Have the controller decide `command`, wherever its leader is.

        `done(error, result)` once; REQUEST_TIMED_OUT when it was not decided in time, as far as is
        known here (it may be, or still become so).
        """

    def new_producer_id(self, done: Callable[[ErrorCode, ProducerId, ProducerEpoch], None]) -> None:
        """A producer id nobody ever had, epoch 0; COORDINATOR_LOAD_IN_PROGRESS while no block of
        ids could be had."""


def absent_topic(host: Host) -> ErrorCode:
    """What Metadata says of a name that is not in the catalog: it does not exist, or *not yet*."""
    known = host.knows_all_topics()
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.LEADER_NOT_AVAILABLE


def absent_partition(host: Host) -> ErrorCode:
    """What all others say: clients that hear *not led here* ask again, and elsewhere."""
    known = host.knows_all_topics()
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.NOT_LEADER_OR_FOLLOWER


def named_controller(host: Host, brokers: Sequence[BrokerImage]) -> NodeId:
    """The controller that clients are told of: one of `brokers`, or they fail (K-CONTROLLER).

    Its leader, as far as this node knows; else this node; of one that is cut off, any other.
    """
    nodes = [broker.node for broker in brokers]
    return next((each for each in (host.controller(), host.node) if each in nodes), nodes[0])
