"""Metadata (key 3), versions 0 to 12.

Topics are asked for by name, from version 12 on also by id; none named in version 0, or null later,
means all. Answers as measured on Apache Kafka 4.3.1 (K-METADATA):

    an id in any entry, or a name that is null
        versions 10 and 11    INVALID_REQUEST for every entry, with what it named
        version 12, an id     the ids decide: names beside them, and entries without an id, do not
                              count, and nothing is created
        version 12, no id     UNKNOWN_SERVER_ERROR for every entry
    unknown                   name 3, impossible name 17, id 100
                                  (these two without brokers, and controller -1)
    named twice               answered once
    a partition not led       LEADER_NOT_AVAILABLE and leader -1
    authorized operations     when asked for, all there are: nobody is refused any. Of topics that
                              were asked for by name, also of those that do not exist

controller_id always names a live broker, because clients fail without one. What a node does not
know that never had the controller's log whole since it was started is LEADER_NOT_AVAILABLE too: it
may exist.

Topics nobody knows yet are created when the client (version 4 on) and the configuration allow it.
Kafka answers 3 at once and has the topic some 40 ms later; here the answer waits until the topic
has its leaders, at most `CREATION_WAIT`, so that a client succeeds at its first try.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from ottla.broker.errors import ErrorCode
from ottla.broker.images import PartitionImage, TopicImage
from ottla.broker.topics.names import name_refusal
from ottla.broker.turn.commands import CreateTopic
from ottla.broker.wire.answers import (
    Lazily,
    MetadataAnswer,
    MetadataBroker,
    PartitionDescribed,
    TopicDescribed,
)
from ottla.broker.wire.api.authorized import cluster_operations, topic_operations
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.api.create_topics import COMMAND_UNITS
from ottla.broker.wire.api.rounds import Asking
from ottla.broker.wire.host import Host, absent_topic, named_controller
from ottla.broker.wire.requests import ZERO_ID, MetadataRequest, MetadataTopic
from ottla.raft.types import Micros, NodeId

Absent = TypeVar("Absent")

CREATION_WAIT: Micros = 1_000_000
"""How long a client waits for the topics its request created."""
LOOK_EVERY: Micros = 2_000
LOOKS = 100
"""Topics that are looked at each time."""
NAMES_A_UNIT = 5
"""Names that cost a unit of the turn to go through once (`ottla.broker.event_loop.slices`)."""
BY_ID_FROM = 12


def handle(request: MetadataRequest, call: Call) -> None:
    """Answer, or create what is missing first."""
    call.run(_look_up(request, call))


def _look_up(request: MetadataRequest, call: Call) -> Steps:
    host = call.host
    wanted = request.topics
    if wanted is None or (call.version == 0 and not wanted):
        _answer(request, call, list(host.topics().values()), _impossible)
        return
    ids, named = yield from _wanted(wanted)
    if ids and call.version >= BY_ID_FROM:
        _identified(ids, request, call)
    elif ids or None in named:
        by_id = call.version >= BY_ID_FROM
        error = ErrorCode.UNKNOWN_SERVER_ERROR if by_id else ErrorCode.INVALID_REQUEST
        _refuse(wanted, call, error)
    else:
        names = [name for name in named if name is not None]
        missing: list[str] = []
        if _may_create(request, call):
            known = host.topics()
            for name in names:
                if name not in known and not name_refusal(name):
                    missing.append(name)
                yield 1
        if missing:
            _Creation(request, call, names, missing).begin()
        else:
            _named(names, request, call, {})


def _wanted(
    topics: Collection[MetadataTopic],
) -> Generator[int, None, tuple[dict[bytes, None], dict[str | None, None]]]:
    """The ids and the names among these topics, each once."""
    ids: dict[bytes, None] = {}
    named: dict[str | None, None] = {}
    for number, topic in enumerate(topics):
        if topic.topic_id != ZERO_ID:
            ids[topic.topic_id] = None
        named[topic.name] = None
        if number % NAMES_A_UNIT == 0:
            yield 1
    return ids, named


def _refuse(wanted: Collection[MetadataTopic], call: Call, error: ErrorCode) -> None:
    """Answer every entry with itself, and say nothing else."""

    def misnamed(topic: MetadataTopic) -> TopicDescribed:
        return TopicDescribed(error, topic.name or "", topic.topic_id)

    call.answer(MetadataAnswer(Lazily(wanted, misnamed)))


def _may_create(request: MetadataRequest, call: Call) -> bool:
    allowed = call.version < 4 or request.allow_auto_topic_creation
    return bool(allowed and call.host.config.auto_create_topics)


class _Creation:
    """Topics on their way, and the request that waits for them."""

    def __init__(
        self, request: MetadataRequest, call: Call, asked: Sequence[str], names: Sequence[str]
    ):
        """`asked`: all topics of the request; `names`: those to create."""
        self.request = request
        self.call = call
        self.asked = asked
        self.asking = Asking(call, self.look)
        self.names = names
        self.leaderless: list[str] = []
        """Those among them that have been seen without a leader last."""
        self.failed: dict[str, ErrorCode] = {}
        self.deadline = call.host.now() + CREATION_WAIT

    def begin(self) -> None:
        """Ask, wait, answer."""
        self.asking.run(self._ask())

    def _ask(self) -> Steps:
        """Ask the controller for every topic, as far as time goes."""
        host = self.call.host
        for name in self.names:
            if host.now() >= self.deadline:
                break
            self.asking.begin()
            decided = self.call.guarded(partial(self.decided, name))
            host.control(CreateTopic(name), decided, self.deadline)
            self.leaderless.append(name)
            yield COMMAND_UNITS

    def decided(self, name: str, error: ErrorCode, _result: object) -> None:
        """The controller has decided about one topic."""
        if error not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
            self.failed[name] = _creation_error(error)
        self.asking.end()

    def look(self) -> None:
        """Answer when every topic has its leaders, or time is up; else look again soon."""
        host = self.call.host
        now = host.now()
        for _ in range(LOOKS):
            if not self.leaderless or not self._is_through(self.leaderless[-1]):
                break
            self.leaderless.pop()
        if now >= self.deadline or not self.leaderless:
            absent = dict.fromkeys(self.names, ErrorCode.LEADER_NOT_AVAILABLE)
            _named(self.asked, self.request, self.call, absent | self.failed)
        elif not self.call.finished:
            host.call_at(now + LOOK_EVERY, self.call.guarded(self.look))

    def _is_through(self, name: str) -> bool:
        return name in self.failed or _is_led(self.call.host, name)


def _creation_error(error: ErrorCode) -> ErrorCode:
    """What a client hears that only wanted to know: a controller that is away means *not yet*."""
    return ErrorCode.LEADER_NOT_AVAILABLE if error is ErrorCode.REQUEST_TIMED_OUT else error


def _is_led(host: Host, name: str) -> bool:
    topic = host.topics().get(name)
    if topic is None:
        return False
    groups = [partition.group for partition in topic.partitions]
    alive = [broker.node for broker in host.brokers(groups)]
    return all(host.leader(group).leader in alive for group in groups)


def _identified(ids: Iterable[bytes], request: MetadataRequest, call: Call) -> None:
    """Answer with the topics of these ids."""
    host = call.host
    by_id = {image.topic_id: image for image in host.topics().values()}
    known = host.knows_all_topics()
    error = ErrorCode.UNKNOWN_TOPIC_ID if known else ErrorCode.LEADER_NOT_AVAILABLE
    found = [by_id.get(each) or each for each in ids]
    _answer(request, call, found, lambda topic_id: TopicDescribed(error, None, topic_id))


def _named(
    names: Sequence[str], request: MetadataRequest, call: Call, absent: Mapping[str, ErrorCode]
) -> None:
    """Answer with the topics of these names; `absent` says what to tell of some that are none."""
    topics, error = call.host.topics(), absent_topic(call.host)
    operations = topic_operations(request)

    def unknown(name: str) -> TopicDescribed:
        impossible = name_refusal(name)
        told = ErrorCode.INVALID_TOPIC_EXCEPTION if impossible else absent.get(name, error)
        return TopicDescribed(told, name, topic_authorized_operations=operations)

    _answer(request, call, [topics.get(name) or name for name in names], unknown)


def _impossible(found: object) -> TopicDescribed:
    raise AssertionError(f"{found!r} is no topic, and all were asked for")


def _known(
    host: Host, topic: TopicImage, alive: Sequence[NodeId], operations: int
) -> TopicDescribed:
    return TopicDescribed(
        ErrorCode.NONE,
        topic.name,
        topic.topic_id,
        partitions=Lazily(topic.partitions, partial(_partition, host, alive)),
        topic_authorized_operations=operations,
    )


def _partition(
    host: Host, alive: Sequence[NodeId], partition: PartitionImage
) -> PartitionDescribed:
    image = host.leader(partition.group)
    led = image.leader in alive
    return PartitionDescribed(
        ErrorCode.NONE if led else ErrorCode.LEADER_NOT_AVAILABLE,
        partition.partition,
        image.leader if led else -1,
        image.epoch,
        partition.replicas,
        image.in_sync,
        [node for node in partition.replicas if node not in alive],
    )


def _answer(
    request: MetadataRequest,
    call: Call,
    found: Sequence[TopicImage | Absent],
    unknown: Callable[[Absent], TopicDescribed],
) -> None:
    """Answer with topics as they are for those who are alive, and with what `unknown` says of all
    else that is found. Each is described when its turn has come (`Lazily`).

    Who is alive is asked once: a client that is told of a leader must find it among the brokers.
    """
    host = call.host
    topics = (each for each in found if isinstance(each, TopicImage))
    brokers = host.brokers(each.group for topic in topics for each in topic.partitions)
    alive = [broker.node for broker in brokers]
    operations = topic_operations(request)

    def describe(each: TopicImage | Absent) -> TopicDescribed:
        if isinstance(each, TopicImage):
            return _known(host, each, alive, operations)
        return unknown(each)

    call.answer(
        MetadataAnswer(
            Lazily(found, describe),
            [MetadataBroker(each.node, each.host, each.port) for each in brokers],
            host.cluster_id,
            named_controller(host, brokers),
            cluster_operations(request),
        )
    )
