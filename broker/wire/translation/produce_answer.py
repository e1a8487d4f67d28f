"""Packs the answer to Produce, versions 3 to 12, without the codec (whose writer takes 11 us).

    v3+   topics[ name, partitions[ partition, error, base_offset, log_append_time,
                                    log_start_offset (v5+),
                                    record_errors[], error_message (v8+),
                                    current_leader (v10+, tag 0) ] ], throttle_time,
          node_endpoints (v10+, tag 0)

From version 9 on arrays and strings are compact, and structures end in tagged fields (KIP-482).
`current_leader` and `node_endpoints` are sent only with NOT_LEADER_OR_FOLLOWER (KIP-951; K-FIELDS),
and only if the leader is known. Otherwise Kafka sends leader -1, which tells a client nothing and
is reported to have kept clients from a partition (librdkafka #5430). Tests compare every version
with the bytes of kio's writer for the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from ottla.broker.errors import ErrorCode
from ottla.broker.images import BrokerImage
from ottla.broker.wire.answers import PartitionProduced, ProduceAnswer
from ottla.broker.wire.api.call import Steps
from ottla.broker.wire.translation.packing import INT, Piece, count, string, varint
from ottla.raft.types import NodeId

FLEXIBLE_FROM = 9

_V3 = Struct(">ihqq")
_V5 = Struct(">ihqqq")
_V8 = Struct(">ihqqqi")
PACK_ONE_V9 = Struct(">ihqqqB8x").pack
"""Packs one partition behind `one_head`: its fields, an empty array (1) of record errors, and zeros
for message, tags of partition and topic, throttle time, and tags of the answer."""
_LEADER = Struct(">BBBiiB")

_OLD_TAIL = INT.pack(0)
"""throttle_time 0."""


def one_head(topic: str, version: int) -> bytes:
    """The part of an answer for one partition that comes before the partition itself."""
    flexible = version >= FLEXIBLE_FROM
    return count(1, flexible) + string(topic, flexible) + count(1, flexible)


def pack_one(head: bytes, version: int, answer: PartitionProduced | Sequence[int]) -> bytes:
    """The whole answer for one partition without message or leader. `head`: from `one_head`.

    `answer`: partition, error, base offset, log append time, log start offset, in this order.
    """
    index, error, base, time, start = answer[:5]
    if version >= FLEXIBLE_FROM:
        return head + PACK_ONE_V9(index, error, base, time, start, 1)
    if version == 8:
        return head + _V8.pack(index, error, base, time, start, 0) + b"\xff\xff" + _OLD_TAIL
    if version >= 5:
        return head + _V5.pack(index, error, base, time, start) + _OLD_TAIL
    return head + _V3.pack(index, error, base, time) + _OLD_TAIL


def pack_in_steps(version: int, answer: ProduceAnswer, pieces: list[Piece]) -> Steps:
    """Append the whole answer to `pieces`, in steps."""
    parts: list[bytes] = []
    topics, brokers = answer
    flexible = version >= FLEXIBLE_FROM
    parts.append(count(len(topics), flexible))
    leaders: dict[NodeId, None] = {}
    for topic, partitions in topics:
        parts += (string(topic, flexible), count(len(partitions), flexible))
        for part in partitions:
            parts.append(_partition(version, part))
            if part.error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                leaders[part.leader] = None
            yield 1
        if flexible:
            parts.append(b"\0")
        yield 1
    parts.append(_OLD_TAIL)
    if version >= 10:
        parts.append(_endpoints([broker for broker in brokers if broker.node in leaders]))
    elif flexible:
        parts.append(b"\0")
    pieces.append(b"".join(parts))


def _partition(version: int, answer: PartitionProduced) -> bytes:
    index, error, base, time, start, message = answer[:6]
    if version < 5:
        return _V3.pack(index, error, base, time)
    if version < 8:
        return _V5.pack(index, error, base, time, start)
    flexible = version >= FLEXIBLE_FROM
    parts = [_V5.pack(index, error, base, time, start), count(len(answer.faults), flexible)]
    for fault in answer.faults:
        parts += (INT.pack(fault.number), string(fault.text, flexible))
        if flexible:
            parts.append(b"\0")
    parts.append(string(message, flexible))
    if flexible:
        parts.append(_leader(version, answer))
    return b"".join(parts)


def _leader(version: int, answer: PartitionProduced) -> bytes:
    if version < 10 or answer.leader < 0 or answer.error != ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return b"\0"
    return _LEADER.pack(1, 0, 9, answer.leader, answer.leader_epoch, 0)


def _endpoints(brokers: Sequence[BrokerImage]) -> bytes:
    if not brokers:
        return b"\0"
    parts = [varint(len(brokers) + 1)]
    for broker in brokers:
        parts += (INT.pack(broker.node), string(broker.host, flexible=True))
        parts += (INT.pack(broker.port), b"\0\0")  # no rack, no tags
    field = b"".join(parts)
    return b"\1\0" + varint(len(field)) + field
