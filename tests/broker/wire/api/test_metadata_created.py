"""Metadata that makes a topic on the way: who waits for what, and for how long.

The fake node's controller decides at once or after `creation_delay`; a new topic is led by
`leader_of_new`.
"""

import asyncio
import time

import pytest

from broker_fake_host import FakeHost
from broker_wire import run
from broker_wire_metadata import ask
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import CreateTopic

E = ErrorCode


@pytest.mark.parametrize("version", [1, 4, 12])
@pytest.mark.parametrize("delay", [0, 0.03])
def test_a_new_topic_is_created_and_answered_with_its_leaders(version, delay):
    async def test(wire):
        wire.host.creation_delay = delay
        client = await wire.client()
        answer = await ask(client, ["new", "t", "new"], version, create=True)
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("new", E.NONE),
            ("t", E.NONE),
        ]
        assert answer.topics[0].partitions[0].leader_id == 1
        assert [command for command, _ in wire.host.controlled] == [CreateTopic("new")]

    run(test)


def test_it_waits_for_the_new_topics_leader():
    host = FakeHost()

    async def test(wire):
        client = await wire.client()
        host.leader_of_new = 0
        future = ask(client, ["new"], create=True)
        await asyncio.sleep(0.05)
        assert not future.done()
        host.set_leader("new", 0, 2)
        (topic,) = (await asyncio.wait_for(future, 2)).topics
        assert topic.partitions[0].leader_id == 2

    run(test, host)


def test_it_does_not_wait_for_ever():
    host = FakeHost()

    async def test(wire):
        client = await wire.client()
        host.leader_of_new = 0
        start = time.monotonic()
        (topic,) = (await ask(client, ["new"], create=True)).topics
        assert 0.9 < time.monotonic() - start < 3
        assert topic.partitions[0].error_code == E.LEADER_NOT_AVAILABLE

    run(test, host)


@pytest.mark.parametrize(
    ("decided", "answered"),
    [
        (E.REQUEST_TIMED_OUT, E.LEADER_NOT_AVAILABLE),
        (E.INVALID_REPLICATION_FACTOR, E.INVALID_REPLICATION_FACTOR),
    ],
)
def test_a_creation_that_fails_says_so(decided, answered):
    async def test(wire):
        wire.host.control_error = decided
        client = await wire.client()
        first, second = (await ask(client, ["new", "t"], create=True)).topics
        assert (first.error_code, second.error_code) == (answered, E.NONE)

    run(test)


def test_a_client_that_leaves_while_its_topic_is_made_leaves_no_timer():
    host = FakeHost()

    async def test(wire):
        client = await wire.client()
        host.leader_of_new = 0
        ask(client, ["new"], create=True)
        await asyncio.sleep(0.02)
        client.close()
        while wire.server.connections:
            await wire.tick()
        timers = host.timers
        await asyncio.sleep(0.03)
        assert host.timers == timers

    run(test, host)
