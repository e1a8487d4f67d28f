"""Every request that needs a consumer group: refused, at once and for good.

Groups do not exist yet (docs/not-implemented.md). A client that is not answered waits for tens of
seconds, most without a word; so each API it could send is served, and says in whatever place its
answer has for it `REFUSAL`, an error after which none of them tries again by itself
(docs/decisions/0027-no-groups-yet.md has what each made of which code). Where the version has a
text, it says what to do instead; few have one, so the broker's log says it too, once a client id.

| API | answered |
|---|---|
| JoinGroup, SyncGroup, Heartbeat, LeaveGroup, ListGroups, OffsetDelete | the error |
| ConsumerGroupHeartbeat | the error, with the text |
| OffsetCommit | the error, for each partition |
| OffsetFetch | the error, for each partition and, where the version has it, each group |
| DescribeGroups, ConsumerGroupDescribe, DeleteGroups | the error, for each group |

Nothing is kept: the answer depends on the request alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.api.encoding import Lazily

REFUSAL = ErrorCode.UNSUPPORTED_VERSION
WITH_TEXT = ErrorCode.INVALID_REQUEST
"""Of the newer protocol, whose answers have a text: to UNSUPPORTED_VERSION there clients advise to
take the older protocol, and show no text."""
TEXT = "Ottla has no consumer groups yet: assign partitions, and keep offsets yourself."

NO_OPERATIONS = -(2**31)
"""Authorized operations: not asked for."""

Fields = dict[str, Any]


def handle(request: Any, call: Call) -> None:
    """Refuse, and say so in the log the first time that this client asks."""
    call.host.remarks.once(f"{call.client_id} groups", f"client {call.client_id!r}: {TEXT}")
    call.reply(throttle_time=0, **REFUSALS[call.route.key](request))


def _simple(_request: Any) -> Fields:
    """One error for the whole request; fields that a version does not have are dropped."""
    return {
        "error_code": REFUSAL,
        "error_message": TEXT,
        "groups": (),
        "member_id": "",
        "members": (),
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": "",
        "leader": "",
        "assignment": b"",
    }


def _heartbeat(_request: Any) -> Fields:
    """ConsumerGroupHeartbeat, whose assignment is null where there is none."""
    return {
        "error_code": WITH_TEXT,
        "error_message": TEXT,
        "member_epoch": -1,
        "heartbeat_interval": 0,
    }


def _committed(request: Any) -> Fields:
    return {"topics": _topics(request.topics, lambda each: {"partition_index": each})}


def _deleted(_request: Any) -> Fields:
    """OffsetDelete, which has one error for all before those of the partitions."""
    return {"error_code": REFUSAL, "topics": ()}


def _fetched(request: Any) -> Fields:
    """OffsetFetch: of one group, or of several from version 8 on; null topics mean all of them."""
    groups = getattr(request, "groups", None)
    if groups is None:
        return {"error_code": REFUSAL, "topics": _topics(request.topics or (), _no_offset)}
    return {
        "groups": Lazily(
            groups,
            lambda group: {
                "group_id": group.group_id,
                "error_code": REFUSAL,
                "topics": _topics(group.topics or (), _no_offset),
            },
        )
    }


def _no_offset(partition: int) -> Fields:
    return {
        "partition_index": partition,
        "committed_offset": -1,
        "committed_leader_epoch": -1,
        "metadata": "",
    }


def _topics(topics: Sequence[Any], partition: Callable[[int], Fields]) -> Lazily[Fields]:
    def refused(number: int) -> Fields:
        return {"error_code": REFUSAL, **partition(number)}

    return Lazily(
        topics,
        lambda topic: {"name": topic.name, "partitions": Lazily(_partitions(topic), refused)},
    )


def _partitions(topic: Any) -> Sequence[int]:
    """Numbers that a topic of the request lists, plain or with what shall be committed."""
    plain = getattr(topic, "partition_indexes", None)
    return [each.partition_index for each in topic.partitions] if plain is None else plain


def _described(request: Any) -> Fields:
    """DescribeGroups."""
    return {"groups": Lazily(request.groups, partial(_group, error=REFUSAL))}


def _described_newer(request: Any) -> Fields:
    """ConsumerGroupDescribe."""
    return {"groups": Lazily(request.group_ids, partial(_group, error=WITH_TEXT))}


def _group(group: str, error: ErrorCode) -> Fields:
    return {
        "error_code": error,
        "error_message": TEXT,
        "group_id": group,
        "group_state": "",
        "protocol_type": "",
        "protocol_data": "",
        "group_epoch": -1,
        "assignment_epoch": -1,
        "assignor_name": "",
        "members": (),
        "authorized_operations": NO_OPERATIONS,
    }


def _groups_deleted(request: Any) -> Fields:
    def refused(group: str) -> Fields:
        return {"group_id": group, "error_code": REFUSAL}

    return {"results": Lazily(request.groups_names, refused)}


REFUSALS: dict[int, Callable[[Any], Fields]] = {
    8: _committed,
    9: _fetched,
    11: _simple,
    12: _simple,
    13: _simple,
    14: _simple,
    15: _described,
    16: _simple,
    42: _groups_deleted,
    47: _deleted,
    68: _heartbeat,
    69: _described_newer,
}
