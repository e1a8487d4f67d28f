"""Topics on a broker that does not do as it is asked, or not at once.

Nothing is left without a word, and a topic that is still being deleted is waited for. The client is
made up: no broker here refuses to delete a topic, or deletes it later.
"""

import asyncio
from types import SimpleNamespace

import pytest

from compare_kit import written
from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode
from ottla.compare import topics
from ottla.compare.errors import CompareError, UnplayableError
from ottla.compare.nodes import Place
from ottla.compare.topics import Topics

EXISTS = ErrorCode.TOPIC_ALREADY_EXISTS
DELETION_DISABLED = 73
"""TOPIC_DELETION_DISABLED, which no broker of Ottla's answers."""


class AnswersCode:
    """A client whose broker answers each deletion with one code."""

    def __init__(self, code):
        self.code = code

    async def call(self, _api, _version, *, topic_names, **_fields):
        answers = [SimpleNamespace(name=each, error_code=self.code) for each in topic_names]
        return SimpleNamespace(responses=answers)


class AnswersNothing:
    """A client whose broker has stopped."""

    async def call(self, *_, **__):
        await asyncio.Event().wait()


class DeletesLater:
    """A client whose broker still has topics of the last run when the next one begins."""

    def __init__(self, **codes):
        self.codes = codes
        """By topic: what the next creations of it answer; behind them, that it is made."""
        self.asked = []

    async def call(self, api, _version, *, topics, **_fields):
        if api == "metadata":
            led = [SimpleNamespace(error_code=0, leader_id=1)]
            brokers = [SimpleNamespace(node_id=7, host="there", port=9)]
            described = [SimpleNamespace(partitions=led)]
            return SimpleNamespace(topics=described, brokers=brokers, controller_id=7)
        if api == "list_offsets":
            return SimpleNamespace(topics=[])
        names = [each["name"] for each in topics]
        self.asked.append(names)
        codes = [(self.codes.get(each) or [0]).pop(0) for each in names]
        answers = [
            SimpleNamespace(name=name, error_code=code, error_message=None)
            for name, code in zip(names, codes, strict=True)
        ]
        return SimpleNamespace(topics=answers)


def make(client, tmp_path):
    case = written(tmp_path, "topics = { a = {}, b = {} }\n[[steps]]\nmetadata = { topics = [] }\n")
    asyncio.run(Topics(client, {}, Place({})).make(case, {"a": "a", "b": "b"}))


def test_a_topic_that_is_still_being_deleted_is_made_when_it_is_gone(tmp_path):
    """With ZooKeeper the answer to a deletion comes first, and sequences of a fuzz that were played
    again ended it."""
    client = DeletesLater(b=[EXISTS, EXISTS])
    make(client, tmp_path)
    assert client.asked == [["a", "b"], ["b"], ["b"]]


def test_the_controller_is_asked_if_no_other_broker_makes_topics(monkeypatch, tmp_path):
    """So it is with ZooKeeper, where a case with several nodes was not played."""
    first, controller = DeletesLater(a=[ErrorCode.NOT_CONTROLLER]), DeletesLater()
    dialled = []

    async def connect(*address):
        dialled.append(address)
        return controller

    monkeypatch.setattr(Client, "connect", connect)
    make(first, tmp_path)
    assert (first.asked, dialled, controller.asked) == ([["a", "b"]], [("there", 9)], [["a"]])


def test_a_topic_that_stays_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(topics, "GONE_SECONDS", 0.03)
    with pytest.raises(CompareError, match="its topic cannot be made: TOPIC_ALREADY_EXISTS"):
        make(DeletesLater(a=[EXISTS] * 1000), tmp_path)


def test_a_config_that_is_refused_is_told_at_once(tmp_path):
    client = DeletesLater(a=[EXISTS] * 1000, b=[ErrorCode.INVALID_CONFIG])
    with pytest.raises(UnplayableError, match="INVALID_CONFIG"):
        make(client, tmp_path)
    assert client.asked == [["a", "b"]]


def delete(client):
    asyncio.run(Topics(client, {}, Place({})).delete(["a", "b"]))


def test_a_topic_that_is_left_is_told():
    """300 topics were left on a broker with delete.topic.enable=false, without a word."""
    with pytest.raises(CompareError, match="topic a cannot be deleted: TOPIC_DELETION_DISABLED"):
        delete(AnswersCode(DELETION_DISABLED))


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_topic_that_is_gone_is_deleted(code):
    delete(AnswersCode(code))


def test_a_broker_that_has_stopped_is_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr(topics, "CALL_SECONDS", 0.01)
    with pytest.raises(CompareError, match=r"delete_topics .* is not answered within 0.01 s"):
        delete(AnswersNothing())
