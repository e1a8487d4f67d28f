"""Metadata: what exists, and what does not (K-METADATA, K-CONTROLLER).

Topics are named, asked for by id, or all of them wanted; in every version. What is made on the way
is in `test_wire_metadata_created.py`.
"""

from typing import Any

import pytest

from broker_fake_host import EPOCH, FadingHost
from broker_wire import default_host, run
from broker_wire_metadata import ask
from ottla.broker.errors import ErrorCode
from ottla.broker.images import BrokerImage
from ottla.broker.wire.answers import NOT_ASKED
from ottla.broker.wire.requests import ZERO_ID

E = ErrorCode


# Found by a stress on a busy machine: a leader fell silent between two looks that one answer took.
# kafka-python, told of a leader that is none of the brokers, never asks for metadata again.
@pytest.mark.parametrize("calls", range(6))
def test_whoever_an_answer_says_leads_is_one_of_its_brokers(calls):
    host = FadingHost(calls)
    host.controller_node = 2
    for name in ("a", "b"):
        host.add_topic(name, leader=2)

    async def test(wire):
        answer = await ask(await wire.client(), ["a", "b"])
        named = {broker.node_id for broker in answer.brokers} | {-1}
        assert answer.controller_id in named
        assert {part.leader_id for topic in answer.topics for part in topic.partitions} <= named

    run(test, host)


@pytest.mark.parametrize("version", range(13))
def test_a_topic_in_every_version(version):
    async def test(wire):
        client = await wire.client()
        answer = await ask(client, ["t"], version)
        assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [
            (1, "one", 9001),
            (2, "two", 9002),
        ]
        (topic,) = answer.topics
        assert (topic.error_code, topic.name) == (E.NONE, "t")
        assert [part.partition_index for part in topic.partitions] == [0, 1, 2]
        part = topic.partitions[0]
        assert (part.error_code, part.leader_id, part.replica_nodes, part.isr_nodes) == (
            E.NONE,
            1,
            (1, 2),
            (1, 2),
        )
        assert getattr(part, "leader_epoch", EPOCH) == EPOCH
        assert getattr(part, "offline_replicas", ()) == ()
        if version >= 1:
            assert (answer.controller_id, topic.is_internal) == (1, False)
        if version >= 2:
            assert answer.cluster_id == "fake"
        if version >= 10:
            assert topic.topic_id.bytes == wire.host.images["t"].topic_id

    run(test)


@pytest.mark.parametrize(
    ("version", "topics", "expected"),
    [(0, [], ["t", "u"]), (1, [], []), (1, None, ["t", "u"]), (12, None, ["t", "u"]), (12, [], [])],
)
def test_all_topics_or_none(version, topics, expected):
    async def test(wire):
        wire.host.add_topic("u")
        client = await wire.client()
        answer = await ask(client, topics, version)
        assert [topic.name for topic in answer.topics] == expected

    run(test)


@pytest.mark.parametrize("version", [4, 9, 12])
def test_an_unknown_topic_that_may_not_be_created(version):
    async def test(wire):
        client = await wire.client()
        for create, allowed in [(False, True), (True, False)]:
            wire.host.config = default_host(auto_create_topics=allowed).config
            (topic,) = (await ask(client, ["new"], version, create=create)).topics
            assert (topic.error_code, topic.name, topic.partitions) == (
                E.UNKNOWN_TOPIC_OR_PARTITION,
                "new",
                (),
            )
            assert getattr(topic, "topic_id", None) is None
        assert wire.host.controlled == []

    run(test)


@pytest.mark.parametrize("name", ["a b", "", ".", "..", "x" * 250, "a/b", "ü"])
@pytest.mark.parametrize("create", [True, False])
def test_impossible_names(name, create):
    async def test(wire):
        client = await wire.client()
        (topic,) = (await ask(client, [name], create=create)).topics
        assert (topic.error_code, topic.topic_id) == (E.INVALID_TOPIC_EXCEPTION, None)
        assert wire.host.controlled == []

    run(test)


def test_topics_by_id():
    async def test(wire):
        client = await wire.client()
        known, unknown = wire.host.images["t"].topic_id, b"\x09" * 16
        first, second = (await ask(client, [], ids=[known, unknown])).topics
        assert (first.error_code, first.name, len(first.partitions)) == (E.NONE, "t", 3)
        assert (second.error_code, second.name) == (E.UNKNOWN_TOPIC_ID, None)
        assert second.topic_id.bytes == unknown

    run(test)


def test_who_may_not_know_all_topics_says_of_none_that_it_does_not_exist():
    async def test(wire):
        client = await wire.client()
        wire.host.knows_all = False
        answer = await ask(client, ["t", "u", "a b"])
        assert [topic.error_code for topic in answer.topics] == [
            E.NONE,
            E.LEADER_NOT_AVAILABLE,
            E.INVALID_TOPIC_EXCEPTION,
        ]
        (unknown,) = (await ask(client, [], ids=[b"\x09" * 16])).topics
        assert unknown.error_code == E.LEADER_NOT_AVAILABLE

    run(test)


UNKNOWN_ID = b"\x09" * 16


def ask_exactly(client, *entries, version=12, **fields):
    """Metadata for entries of name and topic id."""
    options = {
        "allow_auto_topic_creation": True,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    topics = [{"name": name, "topic_id": topic_id} for name, topic_id in entries]
    return client.send("metadata", version, topics=topics, **options | fields)


def told(answer):
    return [
        (topic.error_code, topic.name, topic.topic_id.bytes if topic.topic_id else None)
        for topic in answer.topics
    ]


def test_from_version_12_on_an_id_decides_whatever_the_names_say():
    """Java's describeTopics by id sends the empty name; the name used to decide. Measured on Apache
    Kafka 4.3.1: names beside an id, and entries without one, do not count; nothing is created."""
    host = default_host()
    t, u = host.images["t"].topic_id, host.add_topic("u").topic_id

    async def test(wire):
        client = await wire.client()
        cases: list[tuple[list[Any], Any]] = [
            ([("t", u)], [(E.NONE, "u", u)]),
            ([("", u)], [(E.NONE, "u", u)]),
            ([(None, u)], [(E.NONE, "u", u)]),
            ([("t", UNKNOWN_ID)], [(E.UNKNOWN_TOPIC_ID, None, UNKNOWN_ID)]),
            ([("new", UNKNOWN_ID)], [(E.UNKNOWN_TOPIC_ID, None, UNKNOWN_ID)]),
            ([("t", ZERO_ID), ("new", ZERO_ID), (None, ZERO_ID), (None, u)], [(E.NONE, "u", u)]),
            ([(None, u), (None, t), ("", u)], [(E.NONE, "u", u), (E.NONE, "t", t)]),
            ([(None, UNKNOWN_ID)] * 2, [(E.UNKNOWN_TOPIC_ID, None, UNKNOWN_ID)]),
        ]
        for entries, wanted in cases:
            assert told(await ask_exactly(client, *entries)) == wanted
        assert host.controlled == []

    run(test, host)


def test_neither_name_nor_id_fails_every_entry_of_version_12_without_an_id():
    """And no brokers are named. Measured on Apache Kafka 4.3.1."""

    async def test(wire):
        client = await wire.client()
        answer = await ask_exactly(client, (None, ZERO_ID), ("t", ZERO_ID), ("new", ZERO_ID))
        error = E.UNKNOWN_SERVER_ERROR
        assert told(answer) == [(error, "", None), (error, "t", None), (error, "new", None)]
        assert (answer.brokers, answer.controller_id, answer.cluster_id) == ((), -1, None)
        assert wire.host.controlled == []

    run(test)


@pytest.mark.parametrize("version", [10, 11])
def test_ids_and_missing_names_fail_every_entry_before_version_12(version):
    """Every entry as it was, its id too, and no brokers; measured on Apache Kafka 4.3.1."""

    async def test(wire):
        client = await wire.client()
        t, bad = wire.host.images["t"].topic_id, E.INVALID_REQUEST
        for entries, wanted in (
            ([("t", ZERO_ID), (None, t), ("new", t)], [("t", None), ("", t), ("new", t)]),
            ([(None, ZERO_ID), ("t", ZERO_ID)], [("", None), ("t", None)]),
        ):
            answer = await ask_exactly(
                client, *entries, version=version, include_cluster_authorized_operations=True
            )
            assert told(answer) == [(bad, *each) for each in wanted]
            assert (answer.brokers, answer.controller_id, answer.cluster_id) == ((), -1, None)
            assert getattr(answer, "cluster_authorized_operations", NOT_ASKED) == NOT_ASKED
        assert wire.host.controlled == []

    run(test)


@pytest.mark.parametrize("version", range(13))
def test_a_name_that_is_given_twice_is_answered_once(version):
    """Kafka keeps a set."""

    async def test(wire):
        client = await wire.client()
        answer = await ask(client, ["t", "no", "a b", "t", "no", "a b"], version)
        wanted = [("t", E.NONE), ("no", E.UNKNOWN_TOPIC_OR_PARTITION)]
        wanted.append(("a b", E.INVALID_TOPIC_EXCEPTION))
        assert [(topic.name, topic.error_code) for topic in answer.topics] == wanted

    run(test, default_host(auto_create_topics=False))


@pytest.mark.parametrize("version", range(8, 13))
@pytest.mark.parametrize("of_cluster", [True, False])
@pytest.mark.parametrize("of_topics", [True, False])
def test_authorized_operations_are_all_there_are_when_asked_for(version, of_cluster, of_topics):
    """As Apache Kafka 4.3.1 without an authorizer. Also for names that do not exist, but not for
    ids; whoever does not ask, or asks for all topics, is told so in the same way."""
    fields = {
        "include_cluster_authorized_operations": of_cluster,
        "include_topic_authorized_operations": of_topics,
        "allow_auto_topic_creation": False,
    }

    async def test(wire):
        client = await wire.client()
        entries = [("t", ZERO_ID), ("no", ZERO_ID), ("a b", ZERO_ID)]
        answer = await ask_exactly(client, *entries, version=version, **fields)
        every = await client.send("metadata", version, topics=None, **fields)
        told = [topic.topic_authorized_operations for topic in (*answer.topics, *every.topics)]
        assert told == [3576 if of_topics else NOT_ASKED] * 4
        if version <= 10:
            wanted = 8096 if of_cluster else NOT_ASKED
            assert answer.cluster_authorized_operations == wanted
        if version == 12:
            ids = (None, wire.host.images["t"].topic_id), (None, UNKNOWN_ID)
            known, unknown = (await ask_exactly(client, *ids, **fields)).topics
            assert known.topic_authorized_operations == told[0]
            assert unknown.topic_authorized_operations == NOT_ASKED

    run(test)


def test_the_controller_named_is_alive():
    async def test(wire):
        client = await wire.client()
        for claimed, named in [(2, 2), (0, 1), (3, 1)]:
            wire.host.controller_node = claimed
            assert (await ask(client, [])).controller_id == named

    run(test)


@pytest.mark.parametrize("leader", [0, 3])
def test_a_partition_without_a_living_leader(leader):
    async def test(wire):
        client = await wire.client()
        wire.host.set_leader("t", 1, leader)
        wire.host.nodes = [BrokerImage(1, "one", 9001)]
        (topic,) = (await ask(client, ["t"])).topics
        assert [(p.error_code, p.leader_id) for p in topic.partitions] == [
            (E.NONE, 1),
            (E.LEADER_NOT_AVAILABLE, -1),
            (E.NONE, 1),
        ]
        assert topic.partitions[0].offline_replicas == (2,)

    run(test)
