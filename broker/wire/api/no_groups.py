"""Refuses every request that needs a consumer group.

Ottla has no groups yet (docs/not-implemented.md). A client without an answer waits for tens of
seconds, mostly without a message. So all APIs of groups are served, and answer with `REFUSAL`, an
error after which no client tries again by itself (docs/decisions/0027-no-groups-yet.md lists what
each client does with which code). If the version has a field for a text, the text says what to do
instead. Few versions have one, so the broker's log says it, too, once per client id.

| API | answered |
|---|---|
| JoinGroup, SyncGroup, Heartbeat, LeaveGroup, ListGroups, OffsetDelete | the error |
| ConsumerGroupHeartbeat | the error, with the text |
| OffsetCommit | the error, for each partition |
| OffsetFetch | the error, for each partition and, where the version has it, each group |
| DescribeGroups, ConsumerGroupDescribe, DeleteGroups | the error, for each group |

The answer depends only on the request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import Lazily
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.group_answers import (
    ConsumerHeartbeatRefused,
    DeleteGroupsAnswer,
    DescribeGroupsAnswer,
    GroupDeleted,
    GroupDescribed,
    GroupRefused,
    GroupsOffsetsRefused,
    OffsetRefused,
    OffsetsRefused,
    TopicOffsetsRefused,
)
from ottla.broker.wire.requests import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    GroupRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetDeleteRequest,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopic,
)
from ottla.raft.types import Matched

REFUSAL = ErrorCode.UNSUPPORTED_VERSION
WITH_TEXT = ErrorCode.INVALID_REQUEST
"""The error for the newer protocol, whose answers have a text. With UNSUPPORTED_VERSION, clients
show no text and advise to use the older protocol."""
TEXT = "Ottla has no consumer groups yet: assign partitions, and keep offsets yourself."


def handle(request: object, call: Call) -> None:
    """Refuse the request; log it the first time for each client id."""
    call.host.remarks.once(f"{call.client_id} groups", f"client {call.client_id!r}: {TEXT}")
    call.answer(REFUSALS[request.__class__](request))


def _simple(_request: GroupRequest) -> GroupRefused:
    """One error for the whole request."""
    return GroupRefused(REFUSAL, TEXT)


def _heartbeat(_request: ConsumerGroupHeartbeatRequest) -> ConsumerHeartbeatRefused:
    return ConsumerHeartbeatRefused(WITH_TEXT, TEXT)


def _committed(request: OffsetCommitRequest) -> OffsetsRefused:
    def topic(each: OffsetCommitTopic) -> TopicOffsetsRefused:
        return TopicOffsetsRefused(each.name, Lazily(each.partitions, partition))

    def partition(each: OffsetCommitPartition) -> OffsetRefused:
        return OffsetRefused(each.partition_index, REFUSAL)

    return OffsetsRefused(REFUSAL, Lazily(request.topics, topic))


def _deleted(_request: OffsetDeleteRequest) -> OffsetsRefused:
    """OffsetDelete: one error for the whole request."""
    return OffsetsRefused(REFUSAL)


def _fetched(request: OffsetFetchRequest) -> OffsetsRefused | GroupsOffsetsRefused:
    """OffsetFetch: for one group, or for several from version 8 on. Null topics mean all topics."""

    def group(each: OffsetFetchGroup) -> OffsetsRefused:
        return OffsetsRefused(REFUSAL, _topics(each.topics or ()), each.group_id)

    if request.groups is None:
        return OffsetsRefused(REFUSAL, _topics(request.topics or ()))
    return GroupsOffsetsRefused(Lazily(request.groups, group))


def _topics(topics: Collection[OffsetFetchTopic]) -> Collection[TopicOffsetsRefused]:
    def topic(each: OffsetFetchTopic) -> TopicOffsetsRefused:
        refused = partial(OffsetRefused, error_code=REFUSAL)
        return TopicOffsetsRefused(each.name, Lazily(each.partition_indexes, refused))

    return Lazily(topics, topic)


def _described(request: DescribeGroupsRequest) -> DescribeGroupsAnswer:
    return DescribeGroupsAnswer(Lazily(request.groups, partial(_group, REFUSAL)))


def _described_newer(request: ConsumerGroupDescribeRequest) -> DescribeGroupsAnswer:
    return DescribeGroupsAnswer(Lazily(request.group_ids, partial(_group, WITH_TEXT)))


def _group(error: ErrorCode, group: str) -> GroupDescribed:
    return GroupDescribed(group, error, TEXT)


def _groups_deleted(request: DeleteGroupsRequest) -> DeleteGroupsAnswer:
    def refused(group: str) -> GroupDeleted:
        return GroupDeleted(group, REFUSAL)

    return DeleteGroupsAnswer(Lazily(request.groups_names, refused))


REFUSALS: dict[type, Callable[[Matched], object]] = {
    OffsetCommitRequest: _committed,
    OffsetFetchRequest: _fetched,
    GroupRequest: _simple,
    DescribeGroupsRequest: _described,
    DeleteGroupsRequest: _groups_deleted,
    OffsetDeleteRequest: _deleted,
    ConsumerGroupHeartbeatRequest: _heartbeat,
    ConsumerGroupDescribeRequest: _described_newer,
}
