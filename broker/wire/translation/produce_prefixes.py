"""The prefixes of Produce: the repeated part of requests is decoded only once.

Consecutive requests of a producer to one partition are equal from the client id to the number of
the partition. Only the correlation id before that part and the records behind it change. The equal
part, the *prefix*, is remembered with its decoded values. So the next request costs a dictionary
look-up and one copy of its records, about a third of the full decoding.

Only a request with one partition, no transactional id and no tagged fields is remembered, and only
after the codec has read one. Layout of the prefix (p: where the client id ends):

    v3-8   transactional_id FFFF, acks, timeout, 00000001, name length int16, name, 00000001, index
    v9-12  header tags 00, transactional_id 00, acks, timeout, 02, name length + 1, name, 02, index

Behind the prefix are the length of the records (int32; from version 9 a varint of length + 1) and
the records. `ottla.broker.wire.translation.produce_shortcut` goes on with what was read here.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from ottla.broker.wire.api.produce import patience
from ottla.broker.wire.requests import ProduceRequest
from ottla.broker.wire.translation.packing import INT, SHORT
from ottla.broker.wire.translation.produce_answer import FLEXIBLE_FROM, one_head
from ottla.log.types import TRANSACTIONAL_BIT
from ottla.raft.types import Micros

PRODUCE_KEY = 0

PREFIXES_KEPT = 4096
LONGEST_PREFIX = 512
"""The longest prefix in bytes: a client must not fill the memory by a long client id."""

_ODD_CODECS_BEFORE_V7 = 0x04
"""This bit is set in the id of zstd and in every unknown codec id."""
_int = INT.unpack_from
_short = SHORT.unpack_from
_tail = Struct("3s").unpack_from
_NO_TAGS = b"\0\0\0"
"""The empty tagged fields of the partition, the topic and the request."""


class Target(NamedTuple):
    """The decoded values of a remembered prefix."""

    client_id: str | None
    topic: str
    partition: int
    acks: int
    timeout: Micros
    odd_bits: int
    """A batch with one of these attribute bits goes to the handler."""
    head: bytes
    """The beginning of the answer; see `produce_answer.one_head`."""


class Shortcut:
    """The remembered prefixes of one version of Produce, for all connections of a node."""

    __slots__ = ("_known", "read", "version")

    def __init__(self, version: int):
        self.version = version
        self._known: dict[bytes, Target] = {}
        self.read = self._read_flexible if version >= FLEXIBLE_FROM else self._read_old
        """`read(view, at, length, end)`: the target and the records of the request that ends before
        `end`. `at`: where the length field of the client id begins; `length`: the client id's
        bytes. None: the prefix is not known, and the codec must read the request."""

    def learn(
        self, view: memoryview, at: int, end: int, client_id: str | None, request: ProduceRequest
    ) -> None:
        """Remember the prefix of a request that the codec has read, if it has the right form."""
        stop = self._prefix_end(view, at, end)
        if stop is None or stop - at > LONGEST_PREFIX:
            return
        (topic,) = request.topic_data
        (partition,) = topic.partition_data
        if len(self._known) >= PREFIXES_KEPT:
            self._known.clear()
        self._known[view[at:stop].tobytes()] = Target(
            client_id,
            topic.name,
            partition.partition,
            request.acks,
            patience(request.timeout),
            TRANSACTIONAL_BIT if self.version >= 7 else TRANSACTIONAL_BIT | _ODD_CODECS_BEFORE_V7,
            one_head(topic.name, self.version),
        )

    def _prefix_end(self, view: memoryview, at: int, end: int) -> int | None:
        """Where the prefix ends; None if the request does not have the right form."""
        p = at + 2 + max(_short(view, at)[0], 0)
        if end - p < 24:
            return None
        if self.version >= FLEXIBLE_FROM:
            name = view[p + 9]
            stop = p + 14 + name
            fits = name < 0x80 and stop < end and _short(view, p)[0] == 0
            return stop if fits and view[p + 8] == 2 and view[p + 9 + name] == 2 else None
        (name,) = _short(view, p + 12)
        stop = p + 22 + name
        fits = name >= 0 and stop < end and _short(view, p)[0] == -1
        one_topic = fits and _int(view, p + 8)[0] == 1
        return stop if one_topic and _int(view, stop - 8)[0] == 1 else None

    def _read_flexible(
        self, view: memoryview, at: int, length: int, end: int
    ) -> tuple[Target, bytes] | None:
        p = at + 11 + length if length > 0 else at + 11
        if p >= end:
            return None
        stop = p + 5 + view[p]
        if stop + 6 > end:
            return None
        target = self._known.get(view[at:stop].tobytes())
        if target is None:
            return None
        size = view[stop]
        stop += 1
        if size > 0x7F:
            size &= 0x7F
            shift = 7
            while shift < 35:
                byte = view[stop]
                stop += 1
                size |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            else:
                return None
        last = stop + size - 1
        if size == 0 or last + 3 > end or _tail(view, last)[0] != _NO_TAGS:
            return None
        return target, view[stop:last].tobytes()

    def _read_old(
        self, view: memoryview, at: int, length: int, end: int
    ) -> tuple[Target, bytes] | None:
        p = at + 14 + length if length > 0 else at + 14
        if p + 16 > end:
            return None
        stop = p + 10 + _short(view, p)[0]
        if stop < p or stop + 4 > end:
            return None
        target = self._known.get(view[at:stop].tobytes())
        if target is None:
            return None
        (size,) = _int(view, stop)
        stop += 4
        if size < 0 or stop + size > end:
            return None
        return target, view[stop : stop + size].tobytes()
