"""What clients are answered that need a consumer group, as values: there are none.

See `ottla.broker.wire.answers`, whose part this is: every client that needs a group is refused at
once (`ottla.broker.wire.api.no_groups`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import NOT_ASKED
from ottla.log.types import NO_OFFSET, Millis, Offset, Term


class GroupRefused(NamedTuple):
    """Answer to the requests that have one error for all, with whatever else a version wants."""

    error_code: ErrorCode
    error_message: str
    groups: Collection[str] = ()
    member_id: str = ""
    members: Collection[str] = ()
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str = ""
    leader: str = ""
    assignment: bytes = b""


class ConsumerHeartbeatRefused(NamedTuple):
    """Answer to ConsumerGroupHeartbeat, whose assignment is null where there is none."""

    error_code: ErrorCode
    error_message: str
    member_epoch: int = -1
    heartbeat_interval: Millis = 0


class OffsetRefused(NamedTuple):
    """Nothing is kept of this partition."""

    partition_index: int
    error_code: ErrorCode
    committed_offset: Offset = NO_OFFSET
    committed_leader_epoch: Term = -1
    metadata: str = ""


class TopicOffsetsRefused(NamedTuple):
    """The same of a topic."""

    name: str
    partitions: Collection[OffsetRefused]


class OffsetsRefused(NamedTuple):
    """Answer to OffsetCommit, OffsetDelete and OffsetFetch, and what the last says of a group."""

    error_code: ErrorCode
    topics: Collection[TopicOffsetsRefused] = ()
    group_id: str = ""


class GroupsOffsetsRefused(NamedTuple):
    """Answer to OffsetFetch from version 8 on."""

    groups: Collection[OffsetsRefused]


class GroupDescribed(NamedTuple):
    """Why there is nothing to say of a group."""

    group_id: str
    error_code: ErrorCode
    error_message: str
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    group_epoch: int = -1
    assignment_epoch: int = -1
    assignor_name: str = ""
    members: Collection[str] = ()
    authorized_operations: int = NOT_ASKED


class DescribeGroupsAnswer(NamedTuple):
    """Answer to DescribeGroups and ConsumerGroupDescribe."""

    groups: Collection[GroupDescribed]


class GroupDeleted(NamedTuple):
    """Why a group was not forgotten."""

    group_id: str
    error_code: ErrorCode


class DeleteGroupsAnswer(NamedTuple):
    """Answer to DeleteGroups."""

    results: Collection[GroupDeleted]
