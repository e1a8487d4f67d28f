"""A node for handlers, made of the real machines: `ApiWorld` is a `Host` without any consensus.

A controller that leads decides about topics, and a `Partition` that leads answers for every replica
that the controller placed on this node; each is driven by hand (`broker_machine`), so that a test
can stop it (`hold`), depose it (`depose`) or let time pass. Requests and answers go through the
codec in both directions: `world.ask(key, version, **fields)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from broker_control import CLUSTER_ID, ControllerDriver, controller, ticket
from broker_machine import MachineDriver
from ottla.broker.config import ClusterConfig
from ottla.broker.counters import Counters
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.slices import Job
from ottla.broker.images import BrokerImage, LeaderImage, TopicImage
from ottla.broker.partition.in_sync import InSync
from ottla.broker.partition.partition import Partition
from ottla.broker.partition.state import PartitionSettings
from ottla.broker.profiles.named import profile_named
from ottla.broker.turn.commands import Command, CreateTopic, Decided
from ottla.broker.turn.tickets import ControlTicket, ProduceTicket, Ticket
from ottla.broker.wire.api import table
from ottla.broker.wire.api.call import Link
from ottla.broker.wire.byte_call import ByteCall
from ottla.broker.wire.codec import API_NAMES, request_schema, response_schema
from ottla.broker.wire.remarks import Remarks
from ottla.broker.wire.routes import Routes
from ottla.broker.wire.searches import Searches
from ottla.log.build import NewRecord, build_batch
from ottla.log.record_batch import read_batch
from ottla.log.types import RecordBatch
from ottla.raft.types import Entry, GroupId, LogIndex, Micros, NodeId

NODE: NodeId = 1
EPOCH = 5
"""The term in which every partition is led first."""
API_KEYS = {API_NAMES[row.key]: row.key for row in table.TABLE}


class Exchange:
    """One request and, once it came, its answer. It is the `Link` of its own call."""

    def __init__(self, world: ApiWorld, key: int, version: int, fields: dict[str, Any]):
        self.host = world
        self.key, self.version = key, version
        self.answer: Any = None
        """The decoded response; None while there is none."""
        asked = request_schema(key, version)
        route = Routes().find(key, version)
        request = route.read(asked.write(asked.build(**fields)), 0)
        self.call = ByteCall(cast(Link, self), route, 1, "test", 0)
        route.handle(request, self.call)

    def done(self, call: ByteCall) -> None:
        """The call was answered: decode what would go to the client."""
        assert self.answer is None, "a request was answered twice"
        assert call.parts is not None
        body = b"".join(bytes(part) for part in call.parts)
        self.answer = response_schema(self.key, self.version).read(body, 0)

    def charge(self, call: ByteCall, size: int) -> None:
        """Budgets are the connection's business."""


class AtOnce:
    """`Slices` of a world without a loop: all of a job in one go."""

    def run(self, job: Job) -> bool:
        """See `Slices`."""
        for _ in job.steps:
            pass
        job.ended(None)
        return True


class HostedPartition(MachineDriver[Partition]):
    """A partition's replica on this node, with a `group` as `ReplicaInbox` wants it."""

    def __init__(self, group: GroupId, replicas: Sequence[NodeId], config: ClusterConfig):
        settings = PartitionSettings(
            group=group,
            counters=Counters(),
            node=NODE,
            profile=profile_named(config.profile),
            max_message_bytes=config.max_message_bytes,
            min_insync_replicas=1,
            leader_queue_bytes=config.leader_queue_bytes,
            max_producers=config.max_producers,
            producer_expiry=config.producer_expiry_ms * 1000,
        )
        lag = config.replica_lag_ms * 1000
        super().__init__(Partition(settings, InSync(lag, tuple(replicas), NODE)))
        self.group = group

    def settle(self) -> None:
        """Commit and propose until nothing moves any more; this node leads, as barriers show."""
        super().settle()
        while wanted := self.machine.leadership.take_barriers():
            for _ in range(wanted):
                self.machine.leadership.barriers.ended(True)
            super().settle()

    def produce(self, *timestamps: int, **options: Any) -> RecordBatch:
        """Append and commit a batch of records with these times; returns it as stored."""
        records = [NewRecord(b"value", timestamp=each) for each in timestamps]
        return self.produce_bytes(build_batch(records, **options))

    def produce_bytes(self, data: bytes) -> RecordBatch:
        """The same for a batch as a producer would send it."""
        batch = read_batch(data)
        assert isinstance(batch, RecordBatch), batch
        wish = ProduceTicket(batch, 1, lambda _: None, self.now + 10**9)
        self.submit(wish)
        self.settle()
        assert wish in self.answered(), "the batch was not answered"
        assert wish.error is ErrorCode.NONE, wish.error
        return batch


class ApiWorld:
    """See the module's text."""

    node = NODE
    cluster_id = CLUSTER_ID

    def __init__(self, nodes: tuple[NodeId, ...] = (1, 2, 3), **settings: Any):
        self.config = ClusterConfig(**settings)
        self.slices: Any = AtOnce()
        self.searches = Searches(lambda call: call())
        self.controlling: ControllerDriver = controller(nodes, **settings)
        self.controlling.lead(term=1)
        self.controlling.commit()
        self.remarks = Remarks()
        self.controller_error = ErrorCode.NONE
        """With anything else no command reaches the controller."""
        self.hold = False
        """Whether partitions get their tickets only at `release`."""
        self.known = [BrokerImage(each, f"host{each}", 9000 + each) for each in nodes]
        self.up = self.known
        self.controller_node = NODE
        self.knows_all = True
        """Has caught up with the controller's log."""
        self.producer_ids: list[tuple[ErrorCode, int, int]] = []
        """What `new_producer_id` answers, in order."""
        self.fail_reads: list[Exception] = []
        """What the next calls of `read` raise, in order."""
        self.partitions: dict[GroupId, HostedPartition] = {}
        self._held: list[tuple[HostedPartition, Ticket]] = []

    # ---- for tests

    def ask(self, api: str, version: int, **fields: Any) -> Any:
        """One request to the API of that name, answered at once: its response."""
        exchange = self.begin(api, version, **fields)
        assert exchange.answer is not None, "the request was not answered"
        return exchange.answer

    def begin(self, api: str, version: int, **fields: Any) -> Exchange:
        """One request, of which the answer may come later."""
        return Exchange(self, API_KEYS[api], version, fields)

    def topic(
        self, name: str, partitions: int = 1, replicas: Sequence[NodeId] = (1,)
    ) -> TopicImage:
        """Create a topic whose partitions all have these replicas."""
        placed = tuple((number, tuple(replicas)) for number in range(partitions))
        self.controlling.decided(CreateTopic(name, assignments=placed))
        return self.topics()[name]

    def log(self, topic: str, partition: int = 0) -> HostedPartition:
        """The partition's replica here, which leads `EPOCH` unless the test deposed it."""
        found = self.replica(topic, partition)
        assert found is not None, f"{topic}-{partition} is not hosted here"
        return found

    def held(self) -> list[Ticket]:
        """Take the held tickets; the test hands them to their partitions itself."""
        held, self._held = self._held, []
        return [each for _, each in held]

    def release(self) -> None:
        """Hand held tickets to their partitions, in the order they came."""
        self.hold = False
        held, self._held = self._held, []
        for replica, each in held:
            self.submit(replica, each)

    def flush(self, replica: HostedPartition) -> None:
        """Hand out what a partition has answered."""
        for each in replica.answered():
            each.on_done(each)

    # ---- Host

    def now(self) -> Micros:
        """The controller's clock."""
        return self.controlling.now

    def wall_ms(self) -> int:
        """Always the same."""
        return 1_700_000_000_000

    def call_at(self, when: Micros, call: Callable[[], None]) -> Callable[[], None]:
        """No handler of these has a timer of its own."""
        raise AssertionError(f"a handler wants {call} to be called at {when}")

    def topics(self) -> Mapping[str, TopicImage]:
        """As the controller decided."""
        return self.controlling.machine.topics

    def knows_all_topics(self) -> bool:
        """As the test said."""
        return self.knows_all

    def brokers(self, _asked: Iterable[int] = ()) -> Sequence[BrokerImage]:
        """Those that are up."""
        return self.up

    def registered(self) -> list[BrokerImage]:
        """See `Host`."""
        return self.known

    def controller(self) -> NodeId:
        """Whom the test named."""
        return self.controller_node

    def leader(self, group: GroupId) -> LeaderImage:
        """This node, always."""
        return LeaderImage(NODE, EPOCH, (NODE,))

    def replica(self, topic: str, partition: int) -> HostedPartition | None:
        """The replica that the controller placed here; it leads from its first use."""
        image = self.topics().get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        part = image.partitions[partition]
        if NODE not in part.replicas:
            return None
        if part.group not in self.partitions:
            made = HostedPartition(part.group, part.replicas, self.config)
            made.lead(EPOCH)
            made.commit()
            self.partitions[part.group] = made
        return self.partitions[part.group]

    def submit(self, replica: HostedPartition, asked: Ticket) -> None:
        """Have the ticket answered at once, or hold it."""
        if self.hold:
            self._held.append((replica, asked))
            return
        replica.submit(asked)
        replica.settle()
        self.flush(replica)

    def read(self, group: GroupId, first: LogIndex, last: LogIndex, max_bytes: int) -> list[Entry]:
        """As `Host.read`."""
        if self.fail_reads:
            raise self.fail_reads.pop(0)
        found: list[Entry] = []
        for entry in self.partitions[group].log[first - 1 : last]:
            max_bytes -= entry.size
            if found and max_bytes < 0:
                break
            found.append(entry)
        return found

    def control(self, command: Command, done: Decided, deadline: Micros) -> None:
        """Have the controller decide at once, or fail as the test said."""
        if self.controller_error is not ErrorCode.NONE:
            done(self.controller_error, {})
            return
        asked: ControlTicket = ticket(command, deadline)
        self.controlling.submit(asked)
        self.controlling.sleep(0)
        self.controlling.settle()
        assert self.controlling.answered() == [asked]
        done(asked.error, asked.result)

    def new_producer_id(self, done: Callable[[ErrorCode, int, int], None]) -> None:
        """The next outcome that the test prepared."""
        done(*self.producer_ids.pop(0))
