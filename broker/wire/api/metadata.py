"""Metadata (key 3), versions 0 to 12.

Topics are named by name, from version 12 on also by id. An empty list in version 0, or null in
later versions, means all topics. Answers as measured on Apache Kafka 4.3.1 (K-METADATA):

    an id in any entry, or a name that is null
        versions 10 and 11    INVALID_REQUEST for every entry, with its name and id
        version 12, an id     only ids count: names beside them, and entries without an id, are
                              ignored, and nothing is created
        version 12, no id     UNKNOWN_SERVER_ERROR for every entry
    unknown                   name 3, impossible name 17, id 100
                                  (these two without brokers, and controller -1)
    named twice               answered once
    a partition without       LEADER_NOT_AVAILABLE and leader -1
    a leader
    authorized operations     if asked for: all, because there is no authorization; also for topics
                              that were asked for by name and do not exist

controller_id always names a live broker, because clients fail without one. A node that has not yet
caught up with the controller's log since its start answers LEADER_NOT_AVAILABLE for an unknown
topic: the topic may exist.

Unknown topics are created if the client (from version 4 on) and the configuration allow it. Kafka
answers 3 at once and has the topic some 40 ms later. Here the answer waits until the topic has its
leaders, at most `CREATION_WAIT`, so that the client's first try succeeds.
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
"""How long a request waits for the topics that it created, at most."""
LOOK_EVERY: Micros = 2_000
LOOKS = 100
"""How many topics are checked each time."""
NAMES_A_UNIT = 5
"""Reading this many names once costs one unit (`ottla.broker.event_loop.slices`)."""
BY_ID_FROM = 12


def handle(request: MetadataRequest, call: Call) -> None:
    """Answer; create missing topics first, if that is allowed."""
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
    """Answer every entry with `error`, and nothing else."""

    def misnamed(topic: MetadataTopic) -> TopicDescribed:
        return TopicDescribed(error, topic.name or "", topic.topic_id)

    call.answer(MetadataAnswer(Lazily(wanted, misnamed)))


def _may_create(request: MetadataRequest, call: Call) -> bool:
    allowed = call.version < 4 or request.allow_auto_topic_creation
    return bool(allowed and call.host.config.auto_create_topics)


class _Creation:
    """Topics that are being created, and the request that waits for them."""

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
        """Those of `names` that had no leader when they were last checked."""
        self.failed: dict[str, ErrorCode] = {}
        self.deadline = call.host.now() + CREATION_WAIT

    def begin(self) -> None:
        """Ask the controller, wait, and answer."""
        self.asking.run(self._ask())

    def _ask(self) -> Steps:
        """Ask the controller to create every topic, until the deadline."""
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
        """Answer if every topic has its leaders or the deadline has passed; else check again
        soon."""
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
    """The error for the client: a timeout of the controller becomes LEADER_NOT_AVAILABLE, so that
    the client asks again."""
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
    """Answer with the topics of these names. `absent`: errors for some that do not exist."""
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
    """Answer with all topics of `found`; `unknown` makes the answer for an element that is not a
    topic. Each is described only when it is written (`Lazily`).

    The brokers are read only once, because a leader in the answer must be among its brokers.
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
