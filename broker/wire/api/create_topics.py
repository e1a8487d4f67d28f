"""CreateTopics (key 19), versions 2 to 7.

Every node serves it and sends one command per topic to the controller's leader.
`ottla.broker.controller.requests` has the checks with their codes and messages. A name that occurs
twice in a request is answered once, with INVALID_REQUEST, and not created. If a request asks for
more than 10,000 topics and partitions, every topic is POLICY_VIOLATION, as in Kafka. The answer
waits until this node knows the new topics, but at most the request's timeout. Then it is
REQUEST_TIMED_OUT, and the topic may be created or not. `validate_only` checks the same and creates
nothing.

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
"""Messages for codes that do not come from the controller's decision."""

TOO_MANY = "Excessively large number of partitions per request."
COMMAND_UNITS = 100
"""The cost of one command to the controller, with the first few replicas that its nodes open or
drop (`ottla.broker.event_loop.slices`). Each partition to create costs one more."""
MOST_CREATED = 10_000
"""Topics and partitions that one request may create: Kafka's MAX_PARTITIONS_PER_BATCH and
MAX_RECORDS_PER_USER_OP."""


def handle(request: CreateTopicsRequest, call: Call) -> None:
    """Send a command for every topic to the controller, and answer once."""
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
        topics[name] = TopicCreated(name)  # keeps the order; the outcome replaces it
        configs = {each.name: each.value for each in topic.configs}
        asked.begin()
        with nothing_collected(aged=True, least=MANY_OBJECTS):
            command = _creation(topic, configs, request.validate_only)
        host.control(command, call.guarded(partial(done, name, configs)), deadline)
        yield COMMAND_UNITS + len(configs) + sizes[name]


def _size(topic: TopicWanted, config: ClusterConfig) -> int:
    """How many partitions the request asks for in this topic, valid or not."""
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
    """The refusal of a topic. The message may quote a very long value, so it is cut, and characters
    that cannot be printed are escaped."""
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
