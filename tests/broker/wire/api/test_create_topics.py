"""CreateTopics as a client sees it; codes and fields as measured (K-CREATE-TOPICS).

Requests and answers pass the codec in both directions; the controller behind the handler is real.
What is refused and why is tested in test_controller_requests.py, here how it looks on the wire.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from broker_api_world import ApiWorld
from ottla.broker.errors import ErrorCode
from ottla.broker.topics.configs import TOPIC_CONFIGS

VERSIONS = range(2, 8)


def topic(name="t", partitions=1, factor=1, **fields):
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": (),
        "configs": (),
        **fields,
    }


def create(world, *topics, version=7, **fields):
    fields = {"timeout": 1000, **fields}
    return world.ask("create_topics", version, topics=topics, **fields).topics


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_created_in_every_version(version):
    world = ApiWorld()
    (made,) = create(world, topic(partitions=3, factor=2), version=version)
    assert (made.name, made.error_code, made.error_message) == ("t", 0, None)
    assert len(world.topics()["t"].partitions) == 3
    if version >= 5:
        assert (made.num_partitions, made.replication_factor) == (3, 2)
        assert [each.name for each in made.configs] == list(TOPIC_CONFIGS)
    if version >= 7:
        assert made.topic_id == UUID(bytes=world.topics()["t"].topic_id)


REFUSED = [
    (topic("a.b"), 36),
    (topic("a_b"), 17),
    (topic("a b"), 17),
    (topic("__cluster_metadata"), 42),
    (topic("__cluster_metadata", partitions=0, factor=9), 42),
    (topic(partitions=0), 37),
    (topic(partitions=-2), 37),
    (topic(factor=0), 38),
    (topic(factor=4), 38),
    (topic(configs=[{"name": "no.such", "value": "1"}]), 40),
    (topic(configs=[{"name": "retention.ms", "value": None}]), 40),
    (topic(assignments=[{"partition_index": 0, "broker_ids": [1]}]), 42),
    (topic(partitions=-1, factor=-1, assignments=[{"partition_index": 0, "broker_ids": [9]}]), 39),
    (topic(partitions=-1, factor=-1, assignments=[{"partition_index": 1, "broker_ids": [1]}]), 39),
]


@pytest.mark.parametrize(("wanted", "code"), REFUSED, ids=range(len(REFUSED)))
@pytest.mark.parametrize("validate_only", [False, True])
def test_a_refused_topic_has_a_message_and_nothing_else(wanted, code, validate_only):
    world = ApiWorld()
    world.topic("a.b")
    (refused,) = create(world, wanted, validate_only=validate_only)
    assert (refused.error_code, bool(refused.error_message)) == (code, True)
    assert (refused.num_partitions, refused.replication_factor) == (-1, -1)
    assert (refused.topic_id, refused.configs) == (None, ())
    assert list(world.topics()) == ["a.b"]


@pytest.mark.parametrize("version", [2, 4, 5, 7])
@pytest.mark.parametrize(
    "wanted",
    [
        {"name": "x" * 32767},
        {"configs": [{"name": "x" * 32767, "value": "1"}]},
        {"configs": [{"name": "max.message.bytes", "value": "x" * 32767}]},
    ],
)
def test_a_text_that_quotes_what_is_too_long_is_cut(wanted, version):
    """Names and values may be as long as a string can be; with a text around them they were longer,
    and the client was never answered."""
    (answer,) = create(ApiWorld(), topic(**wanted), version=version)
    assert answer.error_code in {17, 40}
    assert len(answer.error_message) == 1000


def test_each_topic_of_a_request_is_decided_by_itself_and_answered_in_order():
    world = ApiWorld()
    made = create(world, topic("a"), topic(""), topic("b"), topic("c", factor=9), topic("d"))
    assert [(each.name, each.error_code) for each in made] == [
        ("a", 0),
        ("", 17),
        ("b", 0),
        ("c", 38),
        ("d", 0),
    ]
    assert list(world.topics()) == ["a", "b", "d"]


def test_a_name_that_occurs_twice_is_answered_once_with_42_and_not_created():
    world = ApiWorld()
    twice, once = create(world, topic("a"), topic("b"), topic("a", partitions=2))
    assert (twice.name, twice.error_code, twice.error_message) == ("a", 42, "Duplicate topic name.")
    assert (once.name, once.error_code) == ("b", 0)
    assert list(world.topics()) == ["b"]


def test_minus_one_asks_for_the_defaults_of_the_cluster():
    world = ApiWorld(default_partitions=2, default_replication_factor=3)
    (made,) = create(world, topic(partitions=-1, factor=-1))
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 3)


def test_validate_only_answers_everything_and_creates_nothing():
    world = ApiWorld()
    (made,) = create(world, topic(partitions=2, factor=3), validate_only=True)
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 3)
    assert made.topic_id is not None
    assert len(made.configs) == len(TOPIC_CONFIGS)
    assert dict(world.topics()) == {}


def test_the_answer_says_which_configs_are_the_topic_s_own():
    world = ApiWorld(min_insync_replicas=2)
    own = [{"name": "max.message.bytes", "value": "1000"}]
    (made,) = create(world, topic(configs=own))
    values = {each.name: (each.value, each.config_source, each.read_only) for each in made.configs}
    assert values["max.message.bytes"] == ("1000", 1, False)
    assert values["min.insync.replicas"] == ("2", 4, False)
    assert values["cleanup.policy"] == ("delete", 5, False)


def test_a_manual_assignment_is_followed():
    world = ApiWorld()
    lists = [
        {"partition_index": 1, "broker_ids": [2, 1]},
        {"partition_index": 0, "broker_ids": [3, 2]},
    ]
    (made,) = create(world, topic(partitions=-1, factor=-1, assignments=lists))
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 2)
    assert [part.replicas for part in world.topics()["t"].partitions] == [(3, 2), (2, 1)]


def test_a_controller_out_of_reach_is_told_with_a_message():
    world = ApiWorld()
    world.controller_error = ErrorCode.REQUEST_TIMED_OUT
    (refused,) = create(world, topic())
    assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "it may still" in refused.error_message


@pytest.mark.parametrize("timeout", [0, -1])
def test_a_client_without_patience_is_told_at_once(timeout):
    (refused,) = create(ApiWorld(), topic(), timeout=timeout)
    assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT


def test_no_topics_give_an_empty_answer():
    assert create(ApiWorld()) == ()


def test_more_partitions_than_kafka_creates_for_one_request_are_refused_altogether():
    """MAX_PARTITIONS_PER_BATCH: a small request must not ask for a million replicas."""
    asked = [topic("a", 9_997), topic("b", 1), topic("", -1)]
    answers = create(ApiWorld(), *asked)
    assert [(each.name, each.error_code) for each in answers] == [
        (name, ErrorCode.POLICY_VIOLATION) for name in ("a", "b", "")
    ]
    assert answers[0].error_message == "Excessively large number of partitions per request."
    assert [each.error_code for each in create(ApiWorld(), topic("a", 9_997), topic("b", 1))] == [
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.NONE,
    ]
