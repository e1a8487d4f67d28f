"""Finds the positions of the parts of one record, without decoding key, value or headers.

**Numbers** are Kafka's varints: zigzag in groups of seven bits. A number of 32 bits has at most
five bytes, one of 64 bits at most ten; extra bits are dropped, as in Java. A record of an
uncompressed batch must have the length that it states; of a compressed batch Kafka ignores the
length and reads field after field. This and everything else here was measured on Apache Kafka 4.3.1
(docs/reference/kafka-measured.md).
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.errors import RecordLengthError, RecordsError

INT_BITS, LONG_BITS = 32, 64
MOST_HEADERS = 64
"""A record with more headers is read in parts, so that others can run in between."""


def varint(data: bytes, at: int, bits: int = INT_BITS) -> tuple[int, int]:
    """A zigzag number of `bits` bits, and the position after it. Raises `IndexError` if the data
    ends inside the number, `RecordsError` if the number has too many bytes."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            number &= (1 << bits) - 1
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift >= bits:
            raise RecordsError("a number of too many bytes")


def record_length(data: bytes, at: int) -> tuple[int, int]:
    """The length at the start of a record, and the position after it. Raises `IndexError` as
    `varint` does, and `RecordLengthError` if it has too many bytes: Kafka has its own error for
    that."""
    try:
        return varint(data, at)
    except RecordsError as error:
        raise RecordLengthError(str(error)) from error


class Layout(NamedTuple):
    """The parts of a record: time delta, number, and positions in the data. A null key or value has
    a negative size."""

    time_delta: int
    number: int
    key_at: int
    key_size: int
    value_at: int
    value_size: int
    headers_at: int
    end: int


class ManyHeadersError(Exception):
    """The record has too many headers for one call: read it in parts."""


def layout(data: bytes, at: int, *, exact: bool, most_headers: int = MOST_HEADERS) -> Layout:
    """The layout of the record that begins at `at`. `exact`: it must have the length that it
    states.

    Raises `IndexError` if the data ends inside the record, `RecordsError` if the record is
    malformed, `ManyHeadersError` if it has more than `most_headers` headers.
    """
    length, at = record_length(data, at)
    end = at + length
    time = data[at + 1]
    if time < 0x80:
        time, at = (time >> 1) ^ -(time & 1), at + 2
    else:
        time, at = varint(data, at + 1, LONG_BITS)
    number, at = varint(data, at)
    key_size, key_at = varint(data, at)
    at = key_at + key_size if key_size > 0 else key_at
    value_size, value_at = varint(data, at)
    at = headers_at = value_at + value_size if value_size > 0 else value_at
    headers = data[at]
    at += 1
    if headers:
        headers, at = varint(data, headers_at)
        at = _behind_headers(data, at, headers, most_headers)
    if at > len(data):
        raise IndexError
    if exact and at != end:
        raise RecordsError(f"a record of {length} bytes ends {at - end} behind")
    return Layout(time, number, key_at, key_size, value_at, value_size, headers_at, at)


def plain_headers(data: bytes, at: int, count: int) -> tuple[int, int]:
    """Step over at most `count` headers, as long as their name and value have fewer than 64 bytes
    each and are completely in the data. Returns how many, and the position after them."""
    done, end = 0, len(data)
    try:
        while done < count:
            size = data[at]
            if size & 0x81:
                break
            behind = at + 1 + (size >> 1)
            size = data[behind]
            if size >= 0x80:
                break
            behind += 1 if size & 1 else 1 + (size >> 1)
            if behind > end:
                break
            at = behind
            done += 1
    except IndexError:
        pass  # the rest of this header may be in the next piece
    return done, at


def _behind_headers(data: bytes, at: int, count: int, most: int) -> int:
    if count < 0:
        raise RecordsError(f"{count} headers")
    if count > most:
        raise ManyHeadersError
    for _ in range(count):
        size, at = varint(data, at)
        if size < 0:
            raise RecordsError("a header without a name")
        size, at = varint(data, at + size)
        if size > 0:
            at += size
    return at
