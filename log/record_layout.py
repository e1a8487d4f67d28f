"""Where the parts of one record lie, read without making anything of them.

**Numbers** are Kafka's: zigzag in groups of seven bits, 32 bits in at most five bytes and 64 bits
in at most ten; bits beyond are lost, as in Java. A record of an uncompressed batch is held to the
length it states; in a compressed one Kafka believes no length and reads field behind field. That
and all else here is as measured on Apache Kafka 4.3.1 (docs/reference/kafka-measured.md).
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.errors import RecordLengthError, RecordsError

INT_BITS, LONG_BITS = 32, 64
MOST_HEADERS = 64
"""A record with more of them is read in parts, by who has others to think of."""


def varint(data: bytes, at: int, bits: int = INT_BITS) -> tuple[int, int]:
    """A zigzag number, and what lies behind it. Raises `IndexError` where the data ends inside it,
    `RecordsError` where it has more bytes than a number of so many bits may have."""
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
    """What a record begins with; Kafka has an error of its own for one of too many bytes."""
    try:
        return varint(data, at)
    except RecordsError as error:
        raise RecordLengthError(str(error)) from error


class Layout(NamedTuple):
    """Where the parts of a record lie. Sizes of what is null are negative."""

    time_delta: int
    number: int
    key_at: int
    key_size: int
    value_at: int
    value_size: int
    headers_at: int
    end: int


class ManyHeadersError(Exception):
    """The record is to be read in parts."""


def layout(data: bytes, at: int, *, exact: bool, most_headers: int = MOST_HEADERS) -> Layout:
    """The record that begins there. Raises `IndexError` where the data ends inside it.

    `exact`: it has to be as long as it says. Raises `RecordsError`.
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
    """Step over headers, `count` at most, whose name and value have less than 64 bytes and lie in
    the data whole. Returns how many they are, and what lies behind them."""
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
        pass  # it goes on in the next piece, if at all
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
