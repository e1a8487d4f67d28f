"""The applied state of a producer table as bytes, and its digest.

One msgpack array: a tag with the version, the applied index, whether anybody was ever forgotten,
and the producers in the order of their last applied index, each [id, epoch, last index, window],
the window's batches oldest first, each [first, last, base offset, max timestamp].
What belongs to one leadership (requests in flight) or to one process (when something was seen) is
not in it, so replicas that have applied the same prefix write the same bytes.

Decoding trusts nothing: what comes from a peer or a disk is checked number by number, and windows
are as long as the profile allows. The result is never larger than the bytes it came from promise.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import msgpack

from ottla.idempotency.errors import SnapshotError
from ottla.idempotency.identity import MAX_EPOCH, NO_EPOCH
from ottla.idempotency.producer import Finished, LogIndex, Producer
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.types import ProducerEpoch, ProducerId

TAG = "producers/2"
"""What the bytes are, and in which version."""
_MAX_INT64 = 2**63 - 1
_MIN_INT64 = -(2**63)


Pairing: TypeAlias = Callable[[int], tuple[ProducerId, ProducerEpoch]]


class AppliedState(NamedTuple):
    """What the log prefix up to `applied_index` says."""

    applied_index: LogIndex
    forgotten: bool
    """Whether the log has ever forgotten a producer."""
    producers: OrderedDict[ProducerId, Producer]
    """In the order of their last applied index."""
    pair_of: Pairing | None = None
    """Producer id and epoch by key, where producers are not kept under their ids."""


def encode(state: AppliedState) -> bytes:
    """The bytes for `decode`."""
    packed: bytes = msgpack.packb([TAG, state.applied_index, state.forgotten, _plain(state)])
    return packed


def seen_of(state: AppliedState) -> list[Any]:
    """All that decisions can see of it, whatever the order of its producers, as plain values: equal
    ones have equal digests, and are compared far sooner than digested."""
    return [state.forgotten, sorted(_plain(state))]


def digest_of(seen: list[Any]) -> int:
    """64 bits over what `seen_of` returned."""
    return int.from_bytes(blake2b(msgpack.packb(seen), digest_size=8).digest(), "big")


def decode(
    data: bytes, window: int, key_of: Callable[[ProducerId, ProducerEpoch], int] | None = None
) -> AppliedState:
    """The state that `encode` was given. `key_of`: under what producers are kept, if not their ids.
    Raises SnapshotError."""
    try:
        value = msgpack.unpackb(data)
    except (ValueError, msgpack.UnpackException) as error:
        raise SnapshotError(f"no snapshot of producers: {error or type(error).__name__}") from error
    tag = value[0] if isinstance(value, list) and value else None
    if tag != TAG:
        raise SnapshotError(f"snapshot is {tag!r}, this version reads {TAG!r}")
    _, applied_index, forgotten, rows = _fields(value, 4, "snapshot")
    _number(applied_index, _MAX_INT64, "applied index")
    if type(forgotten) is not bool:
        raise SnapshotError(f"forgotten is {forgotten!r}, wanted true or false")
    if not isinstance(rows, list):
        raise SnapshotError(f"producers are {type(rows).__name__}, wanted an array")
    producers: OrderedDict[ProducerId, Producer] = OrderedDict()
    reached = 1
    for row in rows:
        producer_id, producer = _producer(row, window)
        key = producer_id if key_of is None else key_of(producer_id, producer.epoch)
        if key in producers:
            raise SnapshotError(f"producer {producer_id} comes twice")
        if not reached <= producer.last_index <= applied_index:
            index = producer.last_index
            raise SnapshotError(f"last index {index} is not in {reached}..{applied_index}")
        reached = producer.last_index
        producers[key] = producer
    return AppliedState(applied_index, forgotten, producers)


def _plain(state: AppliedState) -> list[list[Any]]:
    pair_of = state.pair_of
    return [
        [key if pair_of is None else pair_of(key)[0], p.epoch, p.last_index, list(p.finished)]
        for key, p in state.producers.items()
    ]


def _producer(row: object, window: int) -> tuple[ProducerId, Producer]:
    producer_id, epoch, last_index, finished = _fields(row, 4, "producer")
    producer = Producer(_number(epoch, MAX_EPOCH, "epoch", least=NO_EPOCH), window)
    producer.last_index = _number(last_index, _MAX_INT64, "last index")
    if not isinstance(finished, list) or len(finished) > window:
        raise SnapshotError(f"producer {producer_id!r}: window is no array of at most {window}")
    for entry in finished:
        producer.finish(_finished(entry))
    return _number(producer_id, _MAX_INT64, "producer id"), producer


def _finished(entry: object) -> Finished:
    first, last, base_offset, timestamp = _fields(entry, 4, "finished batch")
    return (
        _number(first, MAX_SEQUENCE, "first sequence"),
        _number(last, MAX_SEQUENCE, "last sequence"),
        _number(base_offset, _MAX_INT64, "base offset"),
        # Whatever a client's header said: it was accepted, so it must come back.
        _number(timestamp, _MAX_INT64, "timestamp", least=_MIN_INT64),
    )


def _fields(value: object, count: int, what: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != count:
        raise SnapshotError(f"{what} is no array of {count}")
    return value


def _number(value: object, most: int, what: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= most:
        raise SnapshotError(f"{what} is {value!r}, wanted {least}..{most}")
    return value
