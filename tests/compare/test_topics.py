"""Topics on a broker that does not do as it is asked: nothing is left without a word.

The client is made up: no broker here refuses to delete a topic.
"""

import asyncio
from types import SimpleNamespace

import pytest

from ottla.broker.errors import ErrorCode
from ottla.compare import topics
from ottla.compare.errors import CompareError
from ottla.compare.nodes import Place
from ottla.compare.topics import Topics

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
