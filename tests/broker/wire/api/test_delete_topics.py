"""DeleteTopics as a client sees it.

The controller behind the handler is a real one, led by hand (`ApiWorld`). What is answered where a
topic is named more than once, or in more than one way, was measured on Apache Kafka 4.3.1.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from broker_api_world import ApiWorld
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.codec import id_bytes
from ottla.broker.wire.requests import ZERO_ID


def delete(world, *names, version=5):
    fields = {"topic_names": names, "topics": [{"name": name, "topic_id": None} for name in names]}
    return world.ask("delete_topics", version, timeout=1000, **fields).responses


def delete_exactly(world, *topics):
    return world.ask("delete_topics", 6, timeout=1000, topics=topics).responses


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_is_deleted_by_name_in_every_version(version):
    world = ApiWorld()
    image = world.topic("t")
    world.topic("other")
    (gone,) = delete(world, "t", version=version)
    assert (gone.name, gone.error_code) == ("t", 0)
    assert list(world.topics()) == ["other"]
    if version == 6:
        assert gone.topic_id == UUID(bytes=image.topic_id)


def test_a_topic_is_deleted_by_id_and_the_answer_has_its_name():
    world = ApiWorld()
    image = world.topic("t")
    (gone,) = delete_exactly(world, {"name": None, "topic_id": image.topic_id})
    assert (gone.name, gone.topic_id.bytes, gone.error_code) == ("t", image.topic_id, 0)
    assert dict(world.topics()) == {}


def test_what_is_unknown_is_3_by_name_and_100_by_id_with_messages():
    world = ApiWorld()
    by_name, by_id = delete_exactly(
        world, {"name": "t", "topic_id": None}, {"name": None, "topic_id": bytes(15) + b"x"}
    )
    assert (by_name.name, by_name.topic_id, by_name.error_code) == ("t", None, 3)
    assert (by_id.name, by_id.topic_id.bytes[-1:], by_id.error_code) == (None, b"x", 100)
    assert by_name.error_message == "This server does not host this topic-partition."
    assert by_id.error_message == "This server does not host this topic ID."


@pytest.mark.parametrize("version", [5, 6])
def test_a_name_that_occurs_twice_is_42_once_and_stays(version):
    world = ApiWorld()
    world.topic("a")
    world.topic("b")
    twice, once = delete(world, "a", "b", "a", version=version)
    assert (twice.name, twice.error_code, twice.error_message) == ("a", 42, "Duplicate topic name.")
    assert (once.name, once.error_code) == ("b", 0)
    assert list(world.topics()) == ["a"]


def test_an_id_that_occurs_twice_is_42_once_and_its_topic_stays():
    world = ApiWorld()
    by_id = {"name": None, "topic_id": world.topic("a").topic_id}
    (twice,) = delete_exactly(world, by_id, by_id)
    assert (twice.error_code, twice.error_message) == (42, "Duplicate topic id.")
    assert list(world.topics()) == ["a"]


def test_both_name_and_id_or_neither_is_42():
    world = ApiWorld()
    image = world.topic("a")
    both, neither = delete_exactly(
        world, {"name": "a", "topic_id": image.topic_id}, {"name": None, "topic_id": None}
    )
    assert [both.error_code, neither.error_code] == [42, 42]
    assert both.error_message != neither.error_message
    assert list(world.topics()) == ["a"]


def test_a_controller_out_of_reach_is_told_with_a_message():
    world = ApiWorld()
    world.topic("t")
    world.controller_error = ErrorCode.REQUEST_TIMED_OUT
    (kept,) = delete(world, "t")
    assert (kept.name, kept.error_code, bool(kept.error_message)) == ("t", 7, True)


def test_the_same_name_can_be_created_again_and_is_another_topic():
    world = ApiWorld()
    first = world.topic("t")
    delete(world, "t")
    second = world.topic("t")
    assert first.topic_id != second.topic_id
    assert first.partitions[0].group != second.partitions[0].group


def judged(world, *entries):
    """Error, name and topic id of everything answered for entries of name and id."""
    topics = [{"name": name, "topic_id": topic_id} for name, topic_id in entries]
    return [
        (each.error_code, each.name, id_bytes(each.topic_id))
        for each in delete_exactly(world, *topics)
    ]


def world_of_two():
    world = ApiWorld()
    return world, world.topic("a").topic_id, world.topic("b").topic_id


@pytest.mark.parametrize("turned", [False, True])
def test_a_name_and_in_another_entry_its_id_are_42_once_and_the_topic_stays(turned):
    """It used to be deleted by the one and unknown to the other. As Apache Kafka 4.3.1."""
    world, a, _ = world_of_two()
    entries = [("a", ZERO_ID), (None, a)]
    answer = judged(world, *(reversed(entries) if turned else entries), ("b", ZERO_ID))
    assert answer[0] == (42, "a", a)
    assert [each[:2] for each in answer[1:]] == [(0, "b")]
    assert list(world.topics()) == ["a"]


def test_entries_with_both_are_each_42_and_do_not_concern_others():
    world, a, b = world_of_two()
    assert judged(world, ("a", a), ("b", a), ("a", a)) == [(42, "a", a)] * 2 + [(42, "b", a)]
    assert list(world.topics()) == ["a", "b"]
    assert judged(world, ("a", ZERO_ID), ("c", a), (None, b), ("b", b)) == [
        (0, "a", a),
        (42, "c", a),
        (0, "b", b),
        (42, "b", b),
    ]
    assert list(world.topics()) == []


def test_a_name_that_occurs_twice_does_not_keep_its_id_from_being_deleted():
    """But an id that occurs twice keeps the name. Measured on Apache Kafka 4.3.1."""
    world, a, b = world_of_two()
    entries = [("a", ZERO_ID)] * 2 + [(None, a), ("b", ZERO_ID)] + [(None, b)] * 2
    assert judged(world, *entries) == [
        (42, "a", ZERO_ID),
        (0, "a", a),
        (42, "b", b),
        (42, None, b),
    ]
    assert list(world.topics()) == ["b"]


def test_neither_is_answered_as_often_as_it_occurs():
    world, _, _ = world_of_two()
    assert judged(world, (None, ZERO_ID), (None, ZERO_ID)) == [(42, None, ZERO_ID)] * 2
