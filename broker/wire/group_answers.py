"""Answers to clients that need a consumer group, as values: all of them are refusals.

A part of `ottla.broker.wire.answers`. Ottla has no groups, so every such client is refused at once
(`ottla.broker.wire.api.no_groups`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import NOT_ASKED
from ottla.log.types import NO_OFFSET, Millis, Offset, Term


class GroupRefused(NamedTuple):
    """Answer to requests that have one error for all, with the other fields of their versions."""

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
    """Answer to ConsumerGroupHeartbeat; its assignment is null."""

    error_code: ErrorCode
    error_message: str
    member_epoch: int = -1
    heartbeat_interval: Millis = 0


class OffsetRefused(NamedTuple):
    """The refusal for one partition: no offset is stored."""

    partition_index: int
    error_code: ErrorCode
    committed_offset: Offset = NO_OFFSET
    committed_leader_epoch: Term = -1
    metadata: str = ""


class TopicOffsetsRefused(NamedTuple):
    """The refusals for one topic."""

    name: str
    partitions: Collection[OffsetRefused]


class OffsetsRefused(NamedTuple):
    """Answer to OffsetCommit, OffsetDelete and OffsetFetch; also one group in an answer to
    OffsetFetch."""

    error_code: ErrorCode
    topics: Collection[TopicOffsetsRefused] = ()
    group_id: str = ""


class GroupsOffsetsRefused(NamedTuple):
    """Answer to OffsetFetch from version 8 on."""

    groups: Collection[OffsetsRefused]


class GroupDescribed(NamedTuple):
    """The refusal to describe one group."""

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
    """The refusal to delete one group."""

    group_id: str
    error_code: ErrorCode


class DeleteGroupsAnswer(NamedTuple):
    """Answer to DeleteGroups."""

    results: Collection[GroupDeleted]
