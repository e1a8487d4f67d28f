"""Produce requests as bytes, made once and stamped again for every request.

Version 7, one partition, one uncompressed batch: the form that costs a client least. Whether or not
the producer is idempotent, every request gets a sequence number and a new CRC, so that plain and
idempotent rounds cost the load generator the same.
"""

from struct import Struct

from crc32c import crc32c

from ottla.log.build import build_batch

VERSION = 7
RECORD_BYTES = 1000
"""Values are cut to this size; a request smaller than two of them holds one record."""

_INT = Struct(">i")
_CRC = Struct(">I")
_SHORT = Struct(">h")
_HEADER = Struct(">ihhi")
_CORRELATION_AT = 8
_CRC_AT = 17
_CRC_FROM = 21
_SEQUENCE_AT = 53


def _string(text: str) -> bytes:
    return _SHORT.pack(len(text)) + text.encode()


class Frame:
    """One request whose correlation id and sequence number change, and nothing else."""

    def __init__(self, topic: str, size: int, *, producer_id: int = -1, acks: int = -1):
        """`size` is about the bytes of all records together."""
        values = [b"x" * RECORD_BYTES] * max(1, size // RECORD_BYTES)
        epoch, sequence = (0, 0) if producer_id >= 0 else (-1, -1)
        batch = build_batch(
            values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        head = _string("bench") + _SHORT.pack(-1) + _SHORT.pack(acks) + _INT.pack(30_000)
        head += _INT.pack(1) + _string(topic) + _INT.pack(1) + _INT.pack(0) + _INT.pack(len(batch))
        front = _HEADER.pack(8 + len(head) + len(batch), 0, VERSION, 0) + head
        self.data = bytearray(front + batch)
        """The request as it stands after the last `stamp`."""
        self._batch_at = len(front)
        self._covered = memoryview(self.data)[self._batch_at + _CRC_FROM :]
        self._idempotent = producer_id >= 0
        self._records = len(values)

    def stamp(self, number: int) -> None:
        """Make it request `number` (from 0): its correlation id, and its sequence number."""
        data, at = self.data, self._batch_at
        _INT.pack_into(data, _CORRELATION_AT, number)
        sequence = number * self._records if self._idempotent else -1
        _INT.pack_into(data, at + _SEQUENCE_AT, sequence)
        _CRC.pack_into(data, at + _CRC_AT, crc32c(self._covered))


def error_at(topic: str) -> int:
    """Where in an answer's frame, its size included, the partition's error code stands."""
    return 8 + 4 + 2 + len(topic) + 4 + 4
