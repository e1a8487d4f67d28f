"""What the controller refuses, with which code and message, and what an accepted topic becomes.

Codes and order of the checks as measured on Apache Kafka 4.3.1 (K-CREATE-TOPICS). A refusal at
the leader leaves the log as it was; what only the log can know is tested in test_controller_turns.
"""

from __future__ import annotations

from itertools import product
from typing import Any, cast

import pytest

from broker_control import controller, create, leader
from ottla.broker.controller.commands import LONGEST_TEXT, logged
from ottla.broker.errors import ErrorCode
from ottla.broker.topics.names import name_refusal
from ottla.broker.turn.commands import AllocateProducerIds, CreateTopic, DeleteTopic

BAD_NAMES = ["", ".", "..", "a b", "é", "a/b", "x" * 250, "line\n"]
GOOD_NAMES = ["a", "...", "A-z_0.9", "x" * 249]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_is_17_and_says_why(name):
    code, message = leader().refusal(create(name))
    assert code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert message == name_refusal(name)
    assert message.startswith("Topic name is invalid: ")


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_a_good_name_is_taken(name):
    driver = leader()
    driver.decided(create(name))
    assert list(driver.machine.topics) == [name]


REFUSED = [
    ({"partitions": 0}, 37, "Number of partitions"),
    ({"partitions": -2}, 37, "Number of partitions"),
    ({"partitions": 11}, 37, "at most 10 partitions"),
    ({"replication_factor": 0}, 38, "larger than 0"),
    ({"replication_factor": -2}, 38, "larger than 0"),
    ({"replication_factor": 4}, 38, "only 3 broker(s)"),
    ({"partitions": 0, "replication_factor": 0}, 38, "larger than 0"),
    ({"configs": {"no.such": "1"}}, 40, "Unknown topic config name: no.such"),
    ({"configs": {"max.message.bytes": None}}, 40, "Null value"),
    ({"configs": {"max.message.bytes": "many"}}, 40, "Invalid value many"),
    ({"partitions": 0, "configs": {"no.such": "1"}}, 40, "Unknown topic config"),
    ({"assignments": [[0, [1]]], "replication_factor": 1}, 42, "replication factor"),
    ({"assignments": [[0, [1]]], "partitions": 1}, 42, "numPartitions"),
    ({"assignments": [[0, [9]]]}, 39, "broker 9"),
    ({"assignments": [[0, []]]}, 39, "empty replica list"),
    ({"assignments": [[0, [1, 2, 1]]]}, 39, "the broker 1 more than once"),
    ({"assignments": [[0, [1]], [0, [2]]]}, 39, "partition 0"),
    ({"assignments": [[0, [1]], [2, [2]]]}, 39, "consecutive"),
    ({"assignments": [[1, [1]]]}, 39, "consecutive"),
    ({"assignments": [[0, [1]], [1, [1, 2]]]}, 39, "not consistent"),
]


@pytest.mark.parametrize(("fields", "code", "words"), REFUSED, ids=lambda part: str(part)[:40])
def test_what_makes_no_sense_is_refused_and_costs_no_entry(fields, code, words):
    driver = leader(max_partitions_per_topic=10)
    before = len(driver.log)
    got, message = driver.refusal(create("t", **fields))
    assert (got, len(driver.log)) == (code, before)
    assert words in message


def test_an_existing_name_is_36_and_a_colliding_one_17():
    driver = leader()
    driver.decided(create("a.b_c"))
    assert driver.refusal(create("a.b_c"))[0] is ErrorCode.TOPIC_ALREADY_EXISTS
    for twin in ("a_b.c", "a.b.c", "a_b_c"):
        code, message = driver.refusal(create(twin))
        assert code is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert message == f"Topic '{twin}' collides with existing topic: a.b_c"
    driver.decided(DeleteTopic("a.b_c"))
    driver.decided(create("a_b.c"))


def test_a_name_that_exists_is_found_out_before_its_configs():
    driver = leader()
    driver.decided(create("t"))
    code, _ = driver.refusal(create("t", configs={"no.such": "1"}, partitions=0))
    assert code is ErrorCode.TOPIC_ALREADY_EXISTS


ORDER = list(
    product(
        ("new", "a.b", "a_b", "a b"),
        ({}, {"no.such": "1"}, {"max.message.bytes": "x"}, {"max.message.bytes": None}),
        (-1, -2, 0, 1),
        (-1, -2, 0, 1, 5),
        (None, [[0, [1]]], [[0, [9]]], [[0, []]], [[1, [1]]], [[0, [1]], [0, [1]]], [[-1, [1]]]),
    )
)


def first_fault(name, configs, partitions, factor, assignments):
    """Measured on Apache Kafka 4.3.1, whose answers to all of `ORDER` these are."""
    by_name = {"a.b": 36, "a_b": 17, "a b": 17}
    if name in by_name or configs:
        return by_name.get(name, 40)
    if assignments is not None:
        if (partitions, factor) != (-1, -1):
            return 42
        return 0 if assignments == [[0, [1]]] else 39
    if factor in {-2, 0}:
        return 38
    if partitions in {-2, 0}:
        return 37
    return 38 if factor == 5 else 0


def test_of_several_faults_the_first_in_kafkas_order_is_told():
    driver = leader(nodes=(1,))
    driver.decided(create("a.b"))
    for asked in ORDER:
        name, configs, partitions, factor, assignments = asked
        fields = {"configs": configs, "assignments": assignments, "validate_only": True}
        command = create(name, partitions=partitions, replication_factor=factor, **fields)
        assert int(driver.ask(command).error) == first_fault(*asked), asked


def test_minus_one_means_the_cluster_s_defaults():
    driver = leader(default_partitions=4, default_replication_factor=2)
    result = driver.decided(create("t", partitions=-1, replication_factor=-1))
    assert (result["partitions"], result["replication_factor"]) == (4, 2)


def test_the_default_factor_is_never_more_than_there_are_nodes():
    driver = leader(nodes=(7,), default_replication_factor=3)
    assert driver.decided(create("t", replication_factor=-1))["replication_factor"] == 1


def test_a_topic_is_what_was_asked_for():
    driver = leader()
    result = driver.decided(
        create("t", partitions=3, replication_factor=2, configs={"retention.ms": "-1"})
    )
    topic = driver.machine.topics["t"]
    assert result == {
        "name": "t",
        "topic_id": topic.topic_id,
        "partitions": 3,
        "replication_factor": 2,
    }
    assert topic.configs == {"retention.ms": "-1"}
    assert [part.partition for part in topic.partitions] == [0, 1, 2]
    assert [part.group for part in topic.partitions] == [1, 2, 3]
    assert sorted(part.replicas[0] for part in topic.partitions) == [1, 2, 3]


def test_a_manual_assignment_is_taken_as_it_is_in_any_order_of_partitions():
    driver = leader()
    driver.decided(create("t", assignments=[[1, [3, 1]], [0, [2, 3]]]))
    assert [part.replicas for part in driver.machine.topics["t"].partitions] == [(2, 3), (3, 1)]


def test_validate_only_answers_as_a_creation_and_creates_nothing():
    driver = leader()
    before = len(driver.log), driver.machine.version
    result = driver.decided(create("t", partitions=2, replication_factor=3, validate_only=True))
    assert (result["partitions"], result["replication_factor"]) == (2, 3)
    assert any(result["topic_id"])
    assert (len(driver.log), driver.machine.version, dict(driver.machine.topics)) == (*before, {})


def test_validate_only_of_an_existing_name_is_36():
    driver = leader()
    driver.decided(create("t"))
    assert driver.refusal(create("t", validate_only=True))[0] is ErrorCode.TOPIC_ALREADY_EXISTS


def test_deleting_by_name_and_by_id():
    driver = leader()
    first, second = (driver.decided(create(name))["topic_id"] for name in ("a", "b"))
    assert driver.decided(DeleteTopic("a")) == {"name": "a", "topic_id": first}
    by_id = DeleteTopic(topic_id=second)
    assert driver.decided(by_id) == {"name": "b", "topic_id": second}
    assert dict(driver.machine.topics) == {}
    assert driver.refusal(by_id)[0] is ErrorCode.UNKNOWN_TOPIC_ID


def test_deleting_what_is_not_there_is_3_or_100_with_a_message():
    driver = leader()
    code, message = driver.refusal(DeleteTopic("t"))
    assert (code, bool(message)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
    code, message = driver.refusal(DeleteTopic(topic_id=bytes(16)))
    assert (code, bool(message)) == (ErrorCode.UNKNOWN_TOPIC_ID, True)


def test_producer_ids_come_in_blocks_of_a_thousand():
    driver = leader()
    assert driver.decided(AllocateProducerIds(2)) == {"node": 2, "first": 0, "last": 999}
    assert driver.decided(AllocateProducerIds(1)) == {"node": 1, "first": 1000, "last": 1999}


@pytest.mark.parametrize(
    "command",
    [
        CreateTopic(cast(Any, 7)),
        CreateTopic("x" * (LONGEST_TEXT + 1)),
        CreateTopic("t", partitions=cast(Any, 1.5)),
        CreateTopic("t", partitions=cast(Any, True)),
        CreateTopic("t", partitions=2**31),
        CreateTopic("t", cast(Any, None)),
        CreateTopic("t", replication_factor=cast(Any, "3")),
        CreateTopic("t", assignments=cast(Any, (1, 2))),
        CreateTopic("t", assignments=((0, cast(Any, (1.0,))),)),
        CreateTopic("t", configs={"flush.ms": cast(Any, 5)}),
        CreateTopic("t", configs=cast(Any, ["flush.ms"])),
        CreateTopic("t", validate_only=cast(Any, 1)),
        DeleteTopic(),
        DeleteTopic(cast(Any, b"t")),
        DeleteTopic(topic_id=bytes(15)),
        AllocateProducerIds(-1),
        AllocateProducerIds(cast(Any, "one")),
    ],
    ids=lambda command: repr(command)[:60],
)
def test_a_command_that_does_not_hold_what_its_type_says_is_refused_and_costs_no_entry(command):
    """It broke the leader's turn, or, once in the log, every node that applied it."""
    driver = leader()
    before = len(driver.log)
    code, message = driver.refusal(command)
    assert (code, len(driver.log)) == (ErrorCode.INVALID_REQUEST, before)
    assert message.startswith(f"The controller command {type(command).__name__} ")


@pytest.mark.parametrize("command", ["make_tea", {"type": "create_topic", "name": "t"}], ids=str)
def test_what_is_no_command_is_refused(command):
    code, message = leader().refusal(command)
    assert code is ErrorCode.INVALID_REQUEST
    assert message.startswith("There is no controller command ")


def test_who_asked_is_what_the_ticket_says_and_not_the_command():
    driver = leader()
    driver.decided(create("t"))
    driver.decided(DeleteTopic("t", by=(9, 9, 9)))
    assert logged(cast(bytes, driver.log[-1].payload)) == DeleteTopic("t")


def test_the_log_names_who_was_unheard_of_when_a_topic_was_placed():
    silent = [3]
    driver = leader(unheard=silent)
    driver.decided(create("t", partitions=3))
    silent.clear()
    other = controller()
    other.receive(driver.log)
    other.commit()
    placed = [each.replicas for each in other.machine.topics["t"].partitions]
    assert placed == [(1,), (2,), (1,)]
    driver.decided(create("u", partitions=3))
    assert (3,) in [each.replicas for each in driver.machine.topics["u"].partitions]


def test_a_factor_counts_all_nodes_and_an_assignment_names_whom_it_likes():
    driver = leader(unheard=[2, 3])
    driver.decided(create("t", replication_factor=3))
    driver.decided(create("u", assignments=[[0, [3]]]))
    placed = [each.partitions[0].replicas for each in driver.machine.topics.values()]
    assert placed == [(1, 2, 3), (3,)]
