"""CreateTopics (key 19), versions 2 to 7.

Any node serves it: the controller decides, wherever it leads, and every topic by itself. Which
topics are refused, and with which code and message, stands in `ottla.broker.controller.requests`; a
name that occurs twice in a request is INVALID_REQUEST, once, and none of the two is created; of a
request for more than 10,000 topics and partitions every topic is POLICY_VIOLATION, as in Kafka. The
answer waits until this node knows the new topics too, at most the request's timeout, then
REQUEST_TIMED_OUT: the topic may be created or not. `validate_only` asks the same and creates none.

From version 5 on the answer says what was created: partitions, replication factor and all configs;
from version 7 on the topic id. With an error these are -1, -1, none, and zero (facts/kafka.md 8b).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ottla.broker.config import ClusterConfig
from ottla.broker.errors import ErrorCode
from ottla.broker.topics.configs import describe
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.api.encoding import Lazily, Steps
from ottla.broker.wire.api.rounds import Asking, Fields, deadline_after, refuse
from ottla.broker.wire.codec import ZERO_ID

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


def handle(request: Any, call: Call) -> None:
    """Have the controller decide about every topic, answer once."""
    topics: list[Fields] = []
    asked = Asking(call, lambda: call.reply(throttle_time=0, topics=topics))
    asked.run(_ask(request, call, asked, topics))


def _ask(request: Any, call: Call, asked: Asking, topics: list[Fields]) -> Steps:
    host = call.host
    deadline = deadline_after(host, request.timeout)
    counts: Counter[str] = Counter()
    named: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    for topic in request.topics:
        counts[topic.name] += 1
        named[topic.name] = topic
        sizes[topic.name] = _size(topic, host.config)
        yield 1
    too_many = sum(1 + sizes[name] for name in named if counts[name] == 1) > MOST_CREATED
    for topic in named.values():
        fields = _nothing_created(topic.name)
        topics.append(fields)
        if too_many:
            refuse(fields, ErrorCode.POLICY_VIOLATION, TOO_MANY)
            yield 1
            continue
        if counts[topic.name] > 1:
            refuse(fields, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            yield 1
            continue
        configs = {each.name: each.value for each in topic.configs}

        def done(
            error: ErrorCode,
            result: Fields,
            fields: Fields = fields,
            configs: dict[str, Any] = configs,
        ) -> None:
            if error is ErrorCode.NONE:
                _accept(fields, result, Lazily(describe(configs, host.config), _config))
            else:
                refuse(fields, error, result.get("message") or UNDECIDED.get(error, error.name))
            asked.end()

        asked.begin()
        command = _command(topic, configs, request.validate_only)
        host.control(command, call.guarded(done), deadline)
        yield COMMAND_UNITS + len(configs) + sizes[topic.name]


def _size(topic: Any, config: ClusterConfig) -> int:
    """Partitions that a topic of the request asks for, whether it can have them or not."""
    if topic.assignments:
        return len(topic.assignments)
    return config.default_partitions if topic.num_partitions == -1 else max(0, topic.num_partitions)


def _command(topic: Any, configs: dict[str, Any], validate_only: bool) -> Fields:
    """The controller command for one topic of the request."""
    return {
        "type": "create_topic",
        "name": topic.name,
        "partitions": topic.num_partitions,
        "replication_factor": topic.replication_factor,
        "assignments": [[one.partition_index, list(one.broker_ids)] for one in topic.assignments],
        "configs": configs,
        "validate_only": validate_only,
    }


def _nothing_created(name: str) -> Fields:
    return {
        "name": name,
        "topic_id": ZERO_ID,
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": (),
    }


def _accept(fields: Fields, result: Fields, configs: Lazily[Fields]) -> None:
    fields["topic_id"] = result["topic_id"]
    fields["num_partitions"] = result["partitions"]
    fields["replication_factor"] = result["replication_factor"]
    fields["configs"] = configs


def _config(config: Any) -> Fields:
    return {
        "name": config.name,
        "value": config.value,
        "read_only": False,
        "config_source": config.source,
        "is_sensitive": False,
    }
