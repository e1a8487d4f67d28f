"""The applied state of a producer table as bytes, and its digest.

The bytes are one msgpack array of four: a tag with the version; the applied index; the forgotten
producers (`ottla.idempotency.forgotten`); and the producers in the order of their last applied
index. A producer is [id, epoch, last index, window]. A window has its batches oldest first, each
[first sequence, last sequence, base offset, max timestamp].
The bytes hold no state of one leadership (requests in flight) and none of one process (when a
producer was seen), so replicas that have applied the same prefix write the same bytes.

The bytes may come from a peer or a damaged disk, so decoding checks every number, and refuses a
window that is longer than the rulebook allows.

Encoding and decoding 100,000 producers takes long, so both can be done in steps of some producers
each (`Encoding`, `Decoding`). An `Encoding` writes the state as it was when the `Encoding` was
made: before a producer changes, the caller must pass it to `Encoding.keep`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple, TypeAlias

import msgpack

from ottla.idempotency.errors import SnapshotError
from ottla.idempotency.forgotten import MOST, NO_FLOOR, NO_TAIL, Forgotten, Left
from ottla.idempotency.identity import MAX_EPOCH, MIN_EPOCH
from ottla.idempotency.producer import Finished, LogIndex, Micros, Producer
from ottla.idempotency.sequence import MAX_SEQUENCE
from ottla.log.types import Offset, ProducerEpoch, ProducerId

TAG = "producers/2"
"""The first field: the kind of the bytes and their version."""
_MAX_INT64 = 2**63 - 1
_MIN_INT64 = -(2**63)


Pairing: TypeAlias = Callable[[int], tuple[ProducerId, ProducerEpoch]]
KeyOf: TypeAlias = Callable[[ProducerId, ProducerEpoch], int]
Row: TypeAlias = tuple[ProducerId, ProducerEpoch, LogIndex, tuple[Finished, ...]]
"""One producer: id, epoch, last applied index, window."""


class AppliedState(NamedTuple):
    """What the log prefix up to `applied_index` says."""

    applied_index: LogIndex
    forgotten: Forgotten
    """The producers that the log has forgotten."""
    producers: OrderedDict[ProducerId, Producer]
    """In the order of their last applied index."""
    pair_of: Pairing | None = None
    """From a key of `producers` to producer id and epoch; None if the keys are producer ids."""


def encode(state: AppliedState) -> bytes:
    """The bytes for `decode`."""
    encoding = Encoding(state)
    encoding.step(len(state.producers))
    return encoding.data()


class Encoding:
    """Makes the bytes for `decode` in steps. They hold the state as it was when this was made."""

    __slots__ = ("_index", "_kept", "_left", "_packer", "_pair_of", "left")

    def __init__(self, state: AppliedState):
        producers = state.producers
        self.left = len(producers)
        """How many producers are not encoded yet."""
        self._index = state.applied_index
        self._pair_of = state.pair_of
        self._left = zip(list(producers), list(producers.values()), strict=True)
        self._kept: dict[int, Row] = {}
        """The old rows of producers that have changed since and are not encoded yet."""
        self._packer = msgpack.Packer(autoreset=False)
        self._packer.pack_array_header(4)
        for field in (TAG, state.applied_index, state.forgotten.plain()):
            self._packer.pack(field)
        self._packer.pack_array_header(self.left)

    def keep(self, key: int, producer: Producer) -> None:
        """Call this before a producer changes: its present row is kept for the bytes."""
        if producer.last_index <= self._index and key not in self._kept:
            self._kept[key] = _row(self._pair_of, key, producer)

    def step(self, count: int) -> None:
        """Encode `count` more producers, or as many as are left."""
        pack, kept, pair_of = self._packer.pack, self._kept, self._pair_of
        for key, producer in islice(self._left, count):
            pack(kept.pop(key, None) or _row(pair_of, key, producer))
        self.left = max(self.left - count, 0)

    def data(self) -> bytes:
        """The bytes. Complete once `left` is 0."""
        return bytes(self.view())

    def view(self) -> memoryview:
        """As `data`, without a copy. About 100 bytes for each producer."""
        view: memoryview = self._packer.getbuffer()
        return view


def seen_of(state: AppliedState) -> list[object]:
    """All that a decision depends on, as plain values that do not depend on the order of producers.
    Two equal results have equal digests; comparing them is much faster than two digests."""
    return [state.forgotten.plain(), sorted(_plain(state))]


def digest_of(seen: list[object]) -> int:
    """64 bits over what `seen_of` returned."""
    return int.from_bytes(blake2b(msgpack.packb(seen), digest_size=8).digest(), "big")


def decode(data: bytes, window: int, key_of: KeyOf | None = None) -> AppliedState:
    """The state that `encode` was given. `key_of`: the key of a producer in the result; None: its
    id. Raises SnapshotError."""
    decoding = Decoding(data, window, key_of)
    decoding.step(decoding.left)
    return decoding.state()


class Decoding:
    """Reads the state of a snapshot in steps. `now`: the time at which all producers count as seen.
    Batches that end below offset `kept_from` are left out, and so are producers without any other.

    The constructor and all methods raise SnapshotError.
    """

    __slots__ = (
        "_kept_from",
        "_key_of",
        "_now",
        "_reached",
        "_size",
        "_state",
        "_unpacker",
        "_window",
        "left",
    )

    def __init__(
        self,
        data: bytes,
        window: int,
        key_of: KeyOf | None = None,
        *,
        now: Micros = 0,
        kept_from: Offset = 0,
    ):
        self._now = now
        self._kept_from = kept_from
        self._window = window
        self._key_of = key_of
        self._reached = 1
        self._size = len(data)
        self._unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1))
        self._unpacker.feed(data)
        with _unpacking():
            fields = self._unpacker.read_array_header()
            tag = self._unpacker.unpack() if fields else None
            if tag != TAG:
                raise SnapshotError(f"snapshot is {tag!r}, this version reads {TAG!r}")
            if fields != 4:
                raise SnapshotError("snapshot is not an array of 4")
            applied_index, forgotten = self._unpacker.unpack(), self._unpacker.unpack()
            self.left: int = self._unpacker.read_array_header()
            """How many producers are not decoded yet."""
        _number(applied_index, _MAX_INT64, "applied index")
        self._state = AppliedState(applied_index, _forgotten(forgotten), OrderedDict())

    def step(self, count: int) -> None:
        """Decode `count` more producers, or as many as are left."""
        producers, unpack = self._state.producers, self._unpacker.unpack
        for _ in range(min(count, self.left)):
            with _unpacking():
                row = unpack()
            producer_id, producer = _producer(row, self._window)
            key = producer_id if self._key_of is None else self._key_of(producer_id, producer.epoch)
            if key in producers:
                raise SnapshotError(f"producer {producer_id} comes twice")
            if not self._reached <= producer.last_index <= self._state.applied_index:
                between = f"{self._reached}..{self._state.applied_index}"
                raise SnapshotError(f"last index {producer.last_index} is not in {between}")
            self._reached = producer.last_index
            producer.seen = self._now
            self.left -= 1
            if not self._kept_from or producer.keep_from(self._kept_from):
                producers[key] = producer

    def state(self) -> AppliedState:
        """The state. Complete once `left` is 0."""
        behind = self._size - self._unpacker.tell()
        if behind:
            raise SnapshotError(f"not a snapshot of producers: {behind} bytes after its end")
        return self._state


@contextmanager
def _unpacking() -> Iterator[None]:
    try:
        yield
    except (ValueError, msgpack.UnpackException) as error:
        raise SnapshotError(
            f"not a snapshot of producers: {error or type(error).__name__}"
        ) from error


def _forgotten(value: object) -> Forgotten:
    """False: no producer is forgotten. True stands in snapshots of older versions, which did not
    remember which ones: then any producer may be forgotten."""
    if type(value) is bool:
        return Forgotten(_MAX_INT64) if value else Forgotten()
    floor, left = _fields(value, 2, "forgotten")
    if not isinstance(left, list) or len(left) > MOST:
        raise SnapshotError(f"forgotten: not an array of at most {MOST}")
    return Forgotten(
        _number(floor, _MAX_INT64, "floor of the forgotten", least=NO_FLOOR), map(_left, left)
    )


def _left(value: object) -> Left:
    producer_id, epoch, tail = _fields(value, 3, "forgotten producer")
    return (
        _number(producer_id, _MAX_INT64, "forgotten id"),
        _number(epoch, MAX_EPOCH, "forgotten epoch", least=MIN_EPOCH),
        _number(tail, MAX_SEQUENCE, "forgotten sequence", least=NO_TAIL),
    )


def _plain(state: AppliedState) -> list[Row]:
    return [_row(state.pair_of, key, producer) for key, producer in state.producers.items()]


def _row(pair_of: Pairing | None, key: int, producer: Producer) -> Row:
    producer_id = key if pair_of is None else pair_of(key)[0]
    return producer_id, producer.epoch, producer.last_index, tuple(producer.finished)


def _producer(row: object, window: int) -> tuple[ProducerId, Producer]:
    producer_id, epoch, last_index, finished = _fields(row, 4, "producer")
    producer = Producer(_number(epoch, MAX_EPOCH, "epoch", least=MIN_EPOCH), window)
    producer.last_index = _number(last_index, _MAX_INT64, "last index")
    if not isinstance(finished, list) or len(finished) > window:
        raise SnapshotError(f"producer {producer_id!r}: window is not an array of at most {window}")
    for entry in finished:
        producer.finish(_finished(entry))
    return _number(producer_id, _MAX_INT64, "producer id"), producer


def _finished(entry: object) -> Finished:
    first, last, base_offset, timestamp = _fields(entry, 4, "finished batch")
    return (
        _number(first, MAX_SEQUENCE, "first sequence"),
        _number(last, MAX_SEQUENCE, "last sequence"),
        _number(base_offset, _MAX_INT64, "base offset"),
        # Any number of 64 bits: the client's header was accepted with it, so it must be readable.
        _number(timestamp, _MAX_INT64, "timestamp", least=_MIN_INT64),
    )


def _fields(value: object, count: int, what: str) -> list[object]:
    if not isinstance(value, list) or len(value) != count:
        raise SnapshotError(f"{what} is not an array of {count}")
    return value


def _number(value: object, most: int, what: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= most:
        raise SnapshotError(f"{what} is {value!r}, wanted {least}..{most}")
    return value
