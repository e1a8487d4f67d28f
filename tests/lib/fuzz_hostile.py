"""Hostile numbers, and where to put them.

A change replaces one length, count or tag that `fuzz_java` has found, or any window of bytes. So
changes are tried, too, that both the guard and the reader of the tests take for harmless.
"""

from __future__ import annotations

from random import Random

from fuzz_frames import Frame
from fuzz_java import Spot
from ottla.log.build import seal

NUMBERS = (
    *(0, 1, 2, 3, -1, -2, -3, 5, 100),
    *(2**7 - 1, 2**7, 2**7 + 1, 2**8 - 1, 2**8),
    *(2**14 - 1, 2**14, 2**15 - 1, 2**15, 2**15 + 1, 2**16 - 1, 2**16),
    *(2**21, 2**24 + 3, 2**28 - 1, 2**28, 2**30, 2**31 - 2, 2**31 - 1, 2**31, -(2**31), 1 - 2**31),
    *(2**32 - 1, 2**32, 2**32 + 1, 2**33, 9 * 2**30, 2**34 + 5, 2**35 - 2, 2**35 - 1),
)
RAW = (
    b"\xff" * 4,
    b"\xff" * 5,
    b"\xff" * 10,
    b"\x80" * 5,
    b"\x80\0",
    b"\x81\0",
    b"\x82\x80\0",
    b"\x80\x80\x80\x80\0",
    b"\x7f" * 5,
)
WIDTHS = {"short": 2, "int": 4}


def varint(number: int) -> bytes:
    """As many bytes as it takes; negative ones as 32 bits."""
    number = number & 0xFFFFFFFF if number < 0 else number
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


_VARINTS = tuple(map(varint, NUMBERS)) + RAW


def fixed(number: int, width: int) -> bytes:
    """The low bytes of it."""
    return (number % (1 << 8 * width)).to_bytes(width, "big")


def encodings(spot: Spot) -> list[bytes]:
    """All that can stand where a number stood."""
    if spot.kind == "varint":
        return list(_VARINTS)
    return sorted({fixed(number, WIDTHS[spot.kind]) for number in NUMBERS})


def replaced(data: bytes, spot: Spot, other: bytes) -> bytes:
    """The bytes with another number at a spot."""
    return data[: spot.at] + other + data[spot.at + spot.size :]


def change(data: bytes, spots: tuple[Spot, ...], rng: Random, first: int = 0) -> bytes:
    """One change, at a known spot or, three times out of ten, anywhere from byte `first` on."""
    if spots and rng.random() < 0.7:
        spot = rng.choice(spots)
    else:
        at = rng.randrange(first, max(len(data), first + 1))
        kind = rng.choice(["varint", "short", "int", "varint"])
        spot = Spot(at, min(WIDTHS.get(kind, 1), len(data) - at), kind)
    if spot.kind == "varint":
        return replaced(data, spot, rng.choice(_VARINTS))
    return replaced(data, spot, fixed(rng.choice(NUMBERS), WIDTHS[spot.kind]))


def changed_request(frame: Frame, rng: Random) -> bytes:
    """A request with one change behind its version, in a frame of the right size."""
    data = change(frame.data, frame.spots, rng, first=8)
    return fixed(len(data) - 4, 4) + data[4:]


def changed_batch(frame: Frame, rng: Random) -> bytes:
    """A Produce request whose batch has a change inside, and a CRC that says it has none."""
    assert frame.batch is not None
    start, stop = frame.batch
    batch = frame.data[start:stop]
    at = rng.randrange(8, len(batch))
    width = min(rng.choice([1, 1, 2, 4, 8]), len(batch) - at)
    number = rng.choice(NUMBERS)
    other = (
        varint(number)[:width].ljust(width, b"\0") if rng.random() < 0.4 else fixed(number, width)
    )
    batch = seal(batch[:at] + other + batch[at + width :])
    return frame.data[:start] + batch + frame.data[stop:]


def changed_size(frame: Frame, rng: Random) -> bytes:
    """A request in a frame that says another size."""
    return fixed(rng.choice(NUMBERS), 4) + frame.data[4:]
