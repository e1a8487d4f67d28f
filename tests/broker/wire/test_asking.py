"""Requests that ask the controller thousands of things have few of them out at a time.

A DeleteTopics of 9,900 names had as many commands under way, some hundred thousand objects, and
Python's collector had the more to look through at once.
"""

import pytest

from broker_wire import api_versions, default_host, frame, run
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.rounds import MOST_OUT

MANY = 5 * MOST_OUT + 3


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Metadata asks for as long as a client is thought to wait, which a slow machine may exceed."""
    monkeypatch.setattr("ottla.broker.wire.api.metadata.CREATION_WAIT", 60_000_000)


def create(count):
    topics = [
        {
            "name": f"x{n}",
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": [],
            "configs": [],
        }
        for n in range(count)
    ]
    return frame("create_topics", 7, topics=topics, timeout=1000, validate_only=True)


def delete(count):
    topics = [{"name": f"x{n}", "topic_id": None} for n in range(count)]
    return frame("delete_topics", 6, topics=topics, timeout=1000)


def metadata(count):
    topics = [{"topic_id": None, "name": f"x{n}"} for n in range(count)]
    asked = {"allow_auto_topic_creation": True, "include_topic_authorized_operations": False}
    return frame("metadata", 12, topics=topics, **asked)


class Controller:
    """Keeps the commands of a fake node until the test lets it decide."""

    def __init__(self, host):
        self.commands = []
        self.waiting = []
        host.control = self.control

    def control(self, command, done, _deadline):
        self.commands.append(command.name)
        self.waiting.append(done)

    def decide(self, most):
        """Refuse the oldest `most` of them."""
        decided, self.waiting = self.waiting[:most], self.waiting[most:]
        for done in decided:
            done(ErrorCode.INVALID_REQUEST, {})


def host():
    return default_host(auto_create_topics=True)


async def settled(wire, controller):
    """Until nothing more is asked."""
    seen = -1
    while seen != len(controller.commands):
        seen = len(controller.commands)
        for _ in range(5):
            await wire.tick()


@pytest.mark.parametrize("request_of", [create, delete, metadata])
def test_so_many_commands_are_out_at_a_time_and_all_are_asked_in_order(request_of):
    async def test(wire):
        controller = Controller(wire.host)
        raw = await wire.raw()
        raw.write(request_of(MANY))
        await settled(wire, controller)
        assert len(controller.waiting) == MOST_OUT
        while len(controller.commands) < MANY:
            controller.decide(MOST_OUT // 3)
            await settled(wire, controller)
            assert len(controller.waiting) <= MOST_OUT
        assert controller.commands == [f"x{n}" for n in range(MANY)]
        controller.decide(MANY)
        assert len(await raw.frame()) > MANY

    run(test, host())


@pytest.mark.parametrize("request_of", [create, delete, metadata])
def test_what_is_sent_behind_begins_when_all_have_been_asked(request_of):
    """Else a later request of the same client would come before what this one still has to ask."""

    async def test(wire):
        controller = Controller(wire.host)
        raw = await wire.raw()
        raw.write(request_of(MOST_OUT + 1) + delete(1) + api_versions())
        await settled(wire, controller)
        assert len(controller.commands) == MOST_OUT
        controller.decide(MOST_OUT)
        await settled(wire, controller)
        assert controller.commands == [*(f"x{n}" for n in range(MOST_OUT + 1)), "x0"]
        controller.decide(2)
        for _ in range(3):
            await raw.frame()

    run(test, host())


def test_a_client_that_goes_away_asks_no_more():
    async def test(wire):
        controller = Controller(wire.host)
        raw = await wire.raw()
        raw.write(delete(MANY))
        await settled(wire, controller)
        raw.close()
        await settled(wire, controller)
        controller.decide(MOST_OUT)
        await settled(wire, controller)
        assert len(controller.commands) == MOST_OUT

    run(test)
