"""CreateTopics (key 19), versions 2 to 7.

Every node serves it: the controller decides, wherever it leads, and every topic by itself. Which
topics are refused, and with which code and message, stands in `ottla.broker.controller.requests`; a
name that occurs twice in a request is INVALID_REQUEST, once, and none of the two is created; of a
request for more than 10,000 topics and partitions every topic is POLICY_VIOLATION, as in Kafka. The
answer waits until this node knows the new topics too, at most the request's timeout, then
REQUEST_TIMED_OUT: the topic may be created or not. `validate_only` asks the same and creates none.

From version 5 on the answer says what was created: partitions, replication factor and all configs;
from version 7 on the topic id. With an error these are -1, -1, none, and zero (K-CREATE-TOPICS).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

from ottla.broker.arguments.spelling import printable
from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ErrorCode
from ottla.broker.event_loop.collecting import MANY_OBJECTS, nothing_collected
from ottla.broker.topics.configs import ConfigValue, describe
from ottla.broker.turn.commands import CreateTopic
from ottla.broker.wire.answers import ConfigCreated, CreateTopicsAnswer, Lazily, TopicCreated
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.api.rounds import Asking, deadline_after
from ottla.broker.wire.requests import CreateTopicsRequest, TopicWanted
from ottla.log.types import Unpacked

UNDECIDED = {
    ErrorCode.REQUEST_TIMED_OUT: "The controller did not decide in time; it may still.",
}
"""What is said about codes that come from the way to the controller, not from its decision."""

TOO_MANY = "Excessively large number of partitions per request."
COMMAND_UNITS = 100
"""What it costs to have the controller decide one command, and its nodes open or drop a first few
replicas (`ottla.broker.event_loop.slices`). Each partition that is created by it costs one more."""
MOST_CREATED = 10_000
"""Topics and partitions that one request may create: Kafka's MAX_PARTITIONS_PER_BATCH and
MAX_RECORDS_PER_USER_OP."""


def handle(request: CreateTopicsRequest, call: Call) -> None:
    """Have the controller decide about every topic, answer once."""
    topics: dict[str, TopicCreated] = {}
    asked = Asking(call, lambda: call.answer(CreateTopicsAnswer(list(topics.values()))))
    asked.run(_ask(request, call, asked, topics))


def _ask(
    request: CreateTopicsRequest, call: Call, asked: Asking, topics: dict[str, TopicCreated]
) -> Steps:
    host = call.host
    deadline = deadline_after(host, request.timeout)
    counts: Counter[str] = Counter()
    named: dict[str, TopicWanted] = {}
    sizes: dict[str, int] = {}
    for topic in request.topics:
        counts[topic.name] += 1
        named[topic.name] = topic
        sizes[topic.name] = _size(topic, host.config)
        yield 1
    too_many = sum(1 + sizes[name] for name in named if counts[name] == 1) > MOST_CREATED

    def done(
        name: str,
        asked_for: dict[str, str | None],
        error: ErrorCode,
        result: Mapping[str, Unpacked],
    ) -> None:
        if error is ErrorCode.NONE:
            configs = {each: value for each, value in asked_for.items() if value is not None}
            topics[name] = _created(name, result, configs, host.config)
        else:
            message = result.get("message") or UNDECIDED.get(error, error.name)
            topics[name] = _refused(name, error, message)
        asked.end()

    for name, topic in named.items():
        if too_many or counts[name] > 1:
            error = ErrorCode.POLICY_VIOLATION if too_many else ErrorCode.INVALID_REQUEST
            topics[name] = _refused(name, error, TOO_MANY if too_many else "Duplicate topic name.")
            yield 1
            continue
        topics[name] = TopicCreated(name)  # the place that its outcome takes
        configs = {each.name: each.value for each in topic.configs}
        asked.begin()
        with nothing_collected(aged=True, least=MANY_OBJECTS):
            command = _creation(topic, configs, request.validate_only)
        host.control(command, call.guarded(partial(done, name, configs)), deadline)
        yield COMMAND_UNITS + len(configs) + sizes[name]


def _size(topic: TopicWanted, config: ClusterConfig) -> int:
    """Partitions that a topic of the request asks for, whether it can have them or not."""
    if topic.assignments:
        return len(topic.assignments)
    return config.default_partitions if topic.num_partitions == -1 else max(0, topic.num_partitions)


def _creation(
    topic: TopicWanted, configs: dict[str, str | None], validate_only: bool
) -> CreateTopic:
    """The controller command for one topic of the request."""
    return CreateTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple([(one.partition_index, tuple(one.broker_ids)) for one in topic.assignments]),
        configs,
        validate_only,
    )


def _refused(name: str, error: ErrorCode, message: str) -> TopicCreated:
    """An error and what there is to say about it. What that quotes may be as long as a string can
    be, and then no text fits it: it is cut, and what cannot be printed is spelt out."""
    return TopicCreated(name, error, printable(message))


def _created(
    name: str, result: Mapping[str, Unpacked], configs: dict[str, str], settings: ClusterConfig
) -> TopicCreated:
    return TopicCreated(
        name,
        topic_id=result["topic_id"],
        num_partitions=result["partitions"],
        replication_factor=result["replication_factor"],
        configs=Lazily(describe(configs, settings), _config),
    )


def _config(config: ConfigValue) -> ConfigCreated:
    return ConfigCreated(config.name, config.value, False, config.source, False)
