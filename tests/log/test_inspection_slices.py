"""Looking into a batch in slices finds what looking at it in one go finds, and what a plain reader
finds that knows of no slices; and no slice is much more than it may be.

Sizes of slices are in plain records, as an `Allowance` counts them.
"""

import gzip
from collections.abc import Callable

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

import log_kit as kit
from log_naive import judged
from ottla.log.build import Codec, NewRecord, build_batch
from ottla.log.inflate import inflated
from ottla.log.inspection import Flaw, RecordRules, inspect, looked_into, verdict
from ottla.log.record_batch import BatchDefect
from ottla.log.record_walk import Allowance
from ottla.log.types import RecordBatch

NOW = 1_700_000_000_000
LIMIT = 1 << 20
RULES = RecordRules()
HUGE_STEP = 200
"""More than any one step costs, but for a piece that is inflated in one go."""

RECORDS = st.lists(
    st.builds(
        NewRecord,
        value=st.none() | st.binary(max_size=300),
        key=st.none() | st.binary(max_size=80),
        headers=st.lists(
            st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3
        ),
        timestamp=st.integers(NOW - 20_000, NOW) | st.sampled_from([NOW + 10**8, -1, 0]),
    ),
    min_size=1,
    max_size=150,
)


DAMAGE = st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=2)
"""Bytes to be replaced: before compression, and behind it."""


def lz4(data):
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


COMPRESS: dict[Codec, Callable[[bytes], bytes]] = {
    Codec.NONE: bytes,
    Codec.GZIP: gzip.compress,
    Codec.SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    Codec.LZ4: lz4,
    Codec.ZSTD: lambda data: bytes(cramjam.zstd.compress(data)),
}


def in_slices(batch, size, limit=LIMIT):
    """The verdict, and the largest slice."""
    allowance, largest = Allowance(size), 0
    looking = looked_into(batch, RULES, NOW, max_bytes=limit, allowance=allowance)
    while (found := verdict(looking)) is None:
        largest = max(largest, size - allowance.left)
        allowance.left = size
    return found, max(largest, size - allowance.left)


def told(found):
    return (found.defect, found.faults) if isinstance(found, Flaw) else found.data


def damaged(data, places):
    """Some bytes of the records replaced."""
    changed = bytearray(data)
    for at, byte in places:
        changed[at % len(changed)] = byte
    return bytes(changed)


def around(payload, count, codec, **header):
    data = build_batch([b""], base_timestamp=NOW)[:61] + payload
    header |= {"attributes": codec, "last_offset_delta": count - 1, "record_count": count}
    return kit.parsed(kit.with_header(data, batch_length=len(data) - 12, **header))


@pytest.mark.slow
@pytest.mark.parametrize("codec", list(Codec))
@given(
    records=RECORDS,
    size=st.integers(1, 300),
    broken=st.tuples(DAMAGE, DAMAGE),
    more=st.sampled_from([0, 0, 0, 1, -1]),
)
def test_slices_find_what_one_look_finds(codec, records, size, broken, more):
    inside, outside = broken
    plain = damaged(build_batch(records, base_timestamp=NOW)[61:], inside)
    batch = around(damaged(COMPRESS[codec](plain), outside), max(1, len(records) + more), codec)
    found, largest = in_slices(batch, size)
    assert told(found) == told(inspect(batch, RULES, NOW, LIMIT))
    # Above: what a piece of the whole batch may cost, which is inflated in one go.
    assert largest <= size + HUGE_STEP + (1 << 16) // 128
    wanted = judged(batch, NOW, LIMIT)
    if isinstance(found, RecordBatch):
        assert (found.max_timestamp, found.data[61:]) == (wanted, batch.data[61:])
    else:
        # Who reads while it inflates may find records broken before it finds the compression so.
        either = {BatchDefect.NOT_INFLATABLE, BatchDefect.BROKEN_RECORDS}
        assert found.defect is wanted or {found.defect, wanted} <= either


@pytest.mark.parametrize("codec", list(Codec))
@given(payload=st.binary(max_size=120), count=st.integers(1, 9), size=st.integers(1, 50))
def test_garbage_is_refused_in_slices_as_in_one_look(codec, payload, count, size):
    magic = {
        Codec.GZIP: b"\x1f\x8b\x08",
        Codec.LZ4: b"\x04\x22\x4d\x18",
        Codec.ZSTD: b"\x28\xb5\x2f\xfd",
    }
    for start in (b"", magic.get(codec, b"")):
        batch = around(start + payload, count, codec)
        assert told(in_slices(batch, size)[0]) == told(inspect(batch, RULES, NOW, LIMIT))


TINY = {
    Codec.GZIP: gzip.compress(b"") * 2000,
    Codec.SNAPPY: b"\x82SNAPPY\x00" + bytes(8) + b"\0\0\0\1\0" * 2000,
    Codec.LZ4: b"\x04\x22\x4d\x18\x60\x40\x82" + b"\1\0\0\x80x" * 2000 + bytes(4),
    Codec.ZSTD: bytes(cramjam.zstd.compress(b"")) * 2000,
}


@pytest.mark.parametrize("codec", list(TINY))
def test_each_of_many_tiny_blocks_or_streams_is_charged(codec):
    found, largest = in_slices(around(TINY[codec], 1, codec), 500)
    assert isinstance(found, Flaw)
    assert largest <= 500 + HUGE_STEP + (1 << 16) // 128


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_garbage_costs_no_large_buffer(codec):
    """Zeros cost time: 64 MiB of them were written for each 100 bytes of garbage."""
    start = {Codec.LZ4: TINY[Codec.LZ4][:7], Codec.ZSTD: b"\x28\xb5\x2f\xfd"}.get(codec, b"")
    allowance = Allowance(10_000)
    batch = around(start + bytes(range(40)), 1, codec)
    looking = looked_into(batch, RULES, NOW, max_bytes=LIMIT, allowance=allowance)
    assert isinstance(verdict(looking), Flaw)
    assert allowance.left > 10_000 - 600


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_a_record_of_very_many_headers_is_read_in_slices(codec):
    record = NewRecord(b"v", None, (("", None),) * 20_000, timestamp=NOW)
    found, largest = in_slices(kit.parsed(build_batch([record], codec=codec)), 1000)
    assert isinstance(found, RecordBatch)
    assert largest < 1000 + HUGE_STEP + (1 << 16) // 128


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.SNAPPY])
def test_a_record_may_be_larger_than_what_is_inflated_at_once(codec):
    records = [
        NewRecord(bytes(300_000), timestamp=NOW),
        NewRecord(b"v", bytes(300_000), timestamp=NOW + 5),
    ]
    batch = kit.parsed(build_batch(records, codec=codec, base_timestamp=NOW))
    pieces = [piece for piece, _ in inflated(codec, memoryview(batch.data)[61:], LIMIT)]
    assert max(map(len, pieces)) < 300_000
    found, _ = in_slices(kit.parsed(kit.with_header(batch.data, max_timestamp=-1)), 10)
    assert found.max_timestamp == NOW + 5
