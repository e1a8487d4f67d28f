"""DeleteTopics (key 20), versions 1 to 6: by name, from version 6 on also by topic id.

Every node serves it and sends one command per topic to the controller's leader. The answer waits
until this node has dropped the topic, so that a later produce is answered with error 3; but at most
the request's timeout, then it is REQUEST_TIMED_OUT. An unknown name is error 3, an unknown id 100,
each with a message.

An ambiguous entry is INVALID_REQUEST and deletes nothing, as in Kafka
(ControllerApis.deleteTopics):

    name and id in one entry, or neither    each such entry is answered; other entries may delete
                                            the topics that it names
    the same name, or the same id, twice    answered once; if a name occurs twice, an entry with
                                            its id can still delete the topic
    a name and, in another entry, its id    answered once, with both
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from ottla.broker.arguments.spelling import printable
from ottla.broker.errors import ErrorCode
from ottla.broker.images import TopicImage
from ottla.broker.turn.commands import DeleteTopic
from ottla.broker.wire.answers import DeleteTopicsAnswer, TopicDeleted
from ottla.broker.wire.api.call import Call, Steps
from ottla.broker.wire.api.create_topics import COMMAND_UNITS, UNDECIDED
from ottla.broker.wire.api.rounds import Asking, deadline_after
from ottla.broker.wire.requests import ZERO_ID, DeleteTopicsRequest
from ottla.log.types import Unpacked

BOTH = "You may not specify both topic name and topic id."
NEITHER = "Neither topic name nor id were specified."
SAME_NAME = "Duplicate topic name."
SAME_ID = "Duplicate topic id."
NAME_OF_THE_ID = "The provided topic name maps to an ID that was already supplied."


class _Named(NamedTuple):
    """One topic of the answer. `why`: why it is refused; empty: the controller decides."""

    name: str | None
    topic_id: bytes
    why: str = ""


Judging: TypeAlias = Generator[int, None, list[_Named]]
"""Steps whose result are the topics of the answer."""


def handle(request: DeleteTopicsRequest, call: Call) -> None:
    """Send a command for every topic to the controller, and answer once."""
    responses: list[TopicDeleted] = []
    asked = Asking(call, lambda: call.answer(DeleteTopicsAnswer(responses)))
    asked.run(_ask(request, call, asked, responses))


def _ask(
    request: DeleteTopicsRequest, call: Call, asked: Asking, responses: list[TopicDeleted]
) -> Steps:
    host = call.host
    deadline = deadline_after(host, request.timeout)
    judged = yield from _judged(_entries(request), host.topics())

    def done(place: int, error: ErrorCode, result: Mapping[str, Unpacked]) -> None:
        if error is ErrorCode.NONE:
            responses[place] = TopicDeleted(result["name"], result["topic_id"])
        else:
            message = result.get("message") or UNDECIDED.get(error, error.name)
            responses[place] = _refused(responses[place], error, message)
        asked.end()

    for name, topic_id, why in judged:
        responses.append(TopicDeleted(name, topic_id))
        if why:
            responses[-1] = _refused(responses[-1], ErrorCode.INVALID_REQUEST, why)
            yield 1
            continue
        asked.begin()
        deletion = DeleteTopic(topic_id=topic_id) if name is None else DeleteTopic(name)
        decided = call.guarded(partial(done, len(responses) - 1))
        host.control(deletion, decided, deadline)
        yield COMMAND_UNITS


def _refused(topic: TopicDeleted, error: ErrorCode, message: str) -> TopicDeleted:
    """The refusal of a topic; a message that is too long is cut."""
    return topic._replace(error_code=error, error_message=printable(message))


def _entries(request: DeleteTopicsRequest) -> Iterator[tuple[str | None, bytes]]:
    """The entries of the request as (name, topic id); the zero id means *none*."""
    for name in request.topic_names:
        yield name, ZERO_ID
    for topic in request.topics:
        yield topic.name, topic.topic_id


class _Asked:
    """Collects facts about all entries of a request."""

    def __init__(self) -> None:
        self.times: Counter[tuple[str | None, bytes]] = Counter()
        """How often each entry occurs."""
        self.known: dict[str, bytes] = {}
        """The topic ids of the names that exist."""
        self.taken: set[bytes] = set()
        """Those of these ids that are also in another entry."""

    def read(
        self, entries: Iterator[tuple[str | None, bytes]], topics: Mapping[str, TopicImage]
    ) -> Steps:
        """Read all entries, in steps."""
        supplied: set[bytes] = set()
        for name, topic_id in entries:
            self.times[name, topic_id] += 1
            if name is None:
                supplied.add(topic_id)
            elif name in topics:
                self.known[name] = topics[name].topic_id
            yield 1
        for name, own in self.known.items():
            if self.times[name, ZERO_ID] == 1 and own in supplied:
                self.taken.add(own)
            yield 1


def _judged(
    entries: Iterator[tuple[str | None, bytes]], topics: Mapping[str, TopicImage]
) -> Judging:
    """The topics of the answer, in the order of the request; see the module's table."""
    asked = _Asked()
    yield from asked.read(entries, topics)
    judged: list[_Named] = []
    for (name, topic_id), count in asked.times.items():
        if (name is None) == (topic_id == ZERO_ID):
            judged += [_Named(name, topic_id, NEITHER if name is None else BOTH)] * count
        elif count > 1:
            judged.append(_Named(name, topic_id, SAME_ID if name is None else SAME_NAME))
        elif name is not None:
            own = asked.known.get(name, ZERO_ID)
            why = NAME_OF_THE_ID if own in asked.taken else ""
            judged.append(_Named(name, own if why else topic_id, why))
        elif topic_id not in asked.taken:
            judged.append(_Named(name, topic_id))
        yield 1
    return judged
