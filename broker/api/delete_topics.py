"""DeleteTopics (key 20), versions 1 to 6: by name, from version 6 on also by topic id.

Any node serves it: the controller decides, wherever it leads, and every topic by itself. The answer
waits until this node has forgotten the topic too, so that a produce that follows is answered 3, at
most the request's timeout, then REQUEST_TIMED_OUT. Unknown names are 3, unknown ids 100, each with
a message. A topic named twice in one request, by name or by id, or neither by name nor by id, or
by both at once, is INVALID_REQUEST and stays (Kafka: ControllerApis.deleteTopics).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ottla.broker.api.call import Call
from ottla.broker.api.create_topics import UNDECIDED
from ottla.broker.api.rounds import Fields, Round, deadline_after
from ottla.broker.codec import ZERO_ID, id_bytes
from ottla.broker.errors import ErrorCode


def handle(request: Any, call: Call) -> None:
    """Have the controller decide about every topic, answer once."""
    host = call.host
    deadline = deadline_after(host, request.timeout)
    named = list(_named(request))
    counts = Counter(named)
    responses: list[Fields] = []
    asked = Round(lambda: call.reply(throttle_time=0, responses=responses))
    for name, topic_id in dict.fromkeys(named):
        fields: Fields = {"name": name, "topic_id": topic_id, "error_code": ErrorCode.NONE}
        responses.append(fields)
        why = _misnamed(name, topic_id, counts[name, topic_id])
        if why:
            _refuse(fields, ErrorCode.INVALID_REQUEST, why)
            continue

        def done(error: ErrorCode, result: Fields, fields: Fields = fields) -> None:
            if error is ErrorCode.NONE:
                fields["name"], fields["topic_id"] = result["name"], result["topic_id"]
            else:
                _refuse(fields, error, result.get("message") or UNDECIDED.get(error, error.name))
            asked.end()

        asked.begin()
        which: Fields = {"name": name} if name is not None else {"topic_id": topic_id}
        host.control({"type": "delete_topic", **which}, done, deadline)
    asked.end()


def _named(request: Any) -> Iterator[tuple[str | None, bytes]]:
    """What the request names, as (name, topic id); the zero id is none."""
    if hasattr(request, "topic_names"):
        for name in request.topic_names:
            yield name, ZERO_ID
    else:
        for topic in request.topics:
            yield topic.name, id_bytes(topic.topic_id)


def _misnamed(name: str | None, topic_id: bytes, count: int) -> str:
    """Why a topic is not clearly named; empty when it is."""
    if name is not None and topic_id != ZERO_ID:
        return "You may not specify both topic name and topic id."
    if name is None and topic_id == ZERO_ID:
        return "Neither topic name nor id were specified."
    if count > 1:
        return "Duplicate topic name." if name is not None else "Duplicate topic id."
    return ""


def _refuse(fields: Fields, error: ErrorCode, message: str) -> None:
    fields["error_code"], fields["error_message"] = error, message
