"""Records inside a batch: what was built comes out again, and malice gives `RecordsError`.

Malice here has a right CRC: a client can compute one over anything. Bombs, cut and flipped
payloads, wrong counts and lengths must all end in the one error, within the bound given.
"""

import cramjam
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import log_kit as kit
from ottla.log.build import Codec, NewRecord, build_batch, varint
from ottla.log.errors import RecordsError
from ottla.log.record_batch import check_batch
from ottla.log.record_walk import Allowance
from ottla.log.records import (
    first_record_at_or_after,
    iter_records,
    record_of_max_timestamp,
    records_of,
)

CODECS = list(Codec)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
RECORDS = st.lists(
    st.builds(
        NewRecord,
        value=st.none() | st.binary(max_size=40),
        key=st.none() | st.binary(max_size=10),
        headers=HEADERS.map(tuple),
        timestamp=st.integers(0, 2**45),
    ),
    min_size=1,
    max_size=20,
)
THREE = [
    NewRecord(b"a", timestamp=100),
    NewRecord(b"b", timestamp=300),
    NewRecord(b"c", timestamp=200),
]


def repacked(payload, codec, count=1):
    """A batch whose CRC is right and whose payload is what the test says."""
    data = build_batch([b""])[:61] + payload
    return kit.with_header(
        data,
        batch_length=len(data) - 12,
        attributes=codec,
        record_count=count,
        last_offset_delta=count - 1,
    )


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=40)
@given(records=RECORDS, base=st.integers(0, 2**45))
def test_what_was_built_comes_out(codec, records, base):
    data = build_batch(records, codec=codec, base_timestamp=base)
    batch = kit.parsed(data)
    assert check_batch(batch, 1 << 20) is None
    assert batch.codec == codec
    batch.stamp(1000, 3)
    found = list(records_of(batch))
    assert [tuple(each) for each in found] == [
        (1000 + position, each.timestamp, each.key, each.value, each.headers)
        for position, each in enumerate(records)
    ]
    assert batch.max_timestamp == max(each.timestamp for each in records)
    assert list(iter_records(batch.stamped())) == found


@pytest.mark.parametrize("codec", CODECS)
def test_large_and_incompressible_records_come_out(codec):
    values = [bytes([i]) * 70_000 for i in range(5)]
    assert [each.value for each in iter_records(build_batch(values, codec=codec))] == values


def test_snappy_without_block_framing_is_read():
    plain = build_batch([b"x" * 100])[61:]
    data = repacked(bytes(cramjam.snappy.compress_raw(plain)), Codec.SNAPPY)
    assert [each.value for each in iter_records(data)] == [b"x" * 100]


def test_a_batch_without_records_cannot_be_built():
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])


@given(st.integers(-(2**63), 2**63 - 1))
@example(-1)
@example(2**63 - 1)
def test_numbers_of_64_bits_come_out(number):
    data = build_batch([NewRecord(None, timestamp=number)])
    assert [each.timestamp for each in iter_records(data)] == [number]
    assert len(varint(number)) <= 10


def found_by(search):
    """What a search finds when nobody makes it stop."""
    try:
        next(search)
    except StopIteration as end:
        return end.value
    raise AssertionError("it stopped")


def first(batch, timestamp, **where):
    return found_by(first_record_at_or_after(batch, timestamp, allowance=Allowance(), **where))


def largest(batch, **where):
    return found_by(record_of_max_timestamp(batch, allowance=Allowance(), **where))


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (-5, (50, 100)),
        (100, (50, 100)),
        (101, (51, 300)),
        (300, (51, 300)),
        (301, None),
    ],
)
def test_the_first_record_at_or_after_a_time(timestamp, found):
    batch = kit.parsed(build_batch(THREE))
    batch.stamp(50, 1)
    assert first(batch, timestamp) == found


def test_the_record_of_the_largest_time_is_the_first_one_that_has_it():
    batch = kit.parsed(build_batch([*THREE, NewRecord(b"d", timestamp=300)]))
    batch.stamp(50, 1)
    assert largest(batch) == (51, 300)


def test_with_log_append_time_every_record_has_the_headers_time():
    data = kit.with_header(build_batch(THREE), attributes=0x08, max_timestamp=900)
    assert [each.timestamp for each in iter_records(data)] == [900, 900, 900]
    assert first(kit.parsed(data), 500) == (0, 900)


# ---- malice

BOMB = b"\0" * 5_000_000


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_at_the_bound(codec):
    data = build_batch([BOMB], codec=codec)
    with pytest.raises(RecordsError):
        list(records_of(kit.parsed(data), max_bytes=1_000_000))
    assert len(list(records_of(kit.parsed(data), max_bytes=6_000_000))) == 1


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize("payload", [b"", b"\0", b"junk" * 20])
def test_a_payload_that_does_not_inflate_is_refused(codec, payload):
    with pytest.raises(RecordsError):
        list(iter_records(repacked(payload, codec)))


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_refused(codec):
    with pytest.raises(RecordsError, match=f"codec {codec} does not exist"):
        list(iter_records(repacked(b"", codec)))


GOOD = build_batch([NewRecord(b"v", b"k", (("h", b"1"),))])[61:]


@pytest.mark.parametrize(
    ("payload", "count", "reason"),
    [
        (GOOD, 2, "end inside a record"),
        (GOOD, 0, "behind the last record"),
        (GOOD + b"x", 1, "behind the last record"),
        (GOOD[:-1], 1, "end inside a record"),
        (b"", 1, "end inside a record"),
        (b"\xff" * 6, 1, "too many bytes"),
        (varint(5) + b"\0\0\0\1\1\x01", 1, "-1 headers"),
        (varint(9) + GOOD[1:], 1, "ends"),
        (varint(8) + b"\0\0\0\1\1\2" + varint(-2) + b"\0", 1, "a header without a name"),
    ],
)
def test_malformed_records_are_refused_with_a_reason(payload, count, reason):
    with pytest.raises(RecordsError, match=reason):
        list(iter_records(repacked(payload, Codec.NONE, count)))


def test_a_batch_that_is_none_is_refused():
    with pytest.raises(RecordsError, match="no complete batch"):
        list(iter_records(b"abc"))


def outcome(data):
    try:
        return list(records_of(kit.parsed(data), max_bytes=200_000))
    except RecordsError as error:
        return str(error)


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=60)
@given(payload=st.binary(max_size=80), count=st.integers(-2, 4))
def test_any_payload_gives_records_or_records_error(codec, payload, count):
    assert isinstance(outcome(repacked(payload, codec, count)), (list, str))


WHOLE = {codec: build_batch([b"v" * 50, b"w" * 50, b"x"], codec=codec) for codec in CODECS}


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=60)
@given(data=st.data())
def test_any_damage_gives_records_or_records_error(codec, data):
    payload = bytearray(WHOLE[codec][61:])
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(payload)))
    assert isinstance(outcome(repacked(bytes(payload[:cut]), codec, 3)), (list, str))
