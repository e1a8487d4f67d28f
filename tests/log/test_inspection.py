"""What is inside a produced batch, row by row as measured on Apache Kafka 4.3.1.

Sources: K-CHECKS 18, K-TIMES and K-BATCHES, and the same broker asked for what they leave open.
Times are relative to `NOW`, the broker's clock.
"""

import cramjam
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import log_kit as kit
from ottla.log.build import Codec, NewRecord, build_batch, varint
from ottla.log.errors import RecordLengthError, RecordsError
from ottla.log.inspection import (
    MOST_INFLATION,
    NO_CLOCK,
    Flaw,
    RecordRules,
    inspect,
    looked_into,
    verdict,
)
from ottla.log.record_batch import BatchDefect, check_batch
from ottla.log.record_walk import Allowance
from ottla.log.records import records_of
from ottla.log.types import RecordBatch

NOW = 1_700_000_000_000
HOUR = 3_600_000
RULES = RecordRules()
OK = None
BROKEN = BatchDefect.BROKEN_RECORDS
ENDLESS = BatchDefect.ENDLESS_LENGTH
STUCK = BatchDefect.NOT_INFLATABLE
PLACES = BatchDefect.WRONG_PLACES
LATE = BatchDefect.BAD_TIMES


def lz4(data):
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


COMPRESS = {
    Codec.NONE: bytes,
    Codec.GZIP: lambda data: bytes(cramjam.gzip.compress(data)),
    Codec.SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    Codec.LZ4: lz4,
    Codec.ZSTD: lambda data: bytes(cramjam.zstd.compress(data)),
}


def framed(payload, count, codec=Codec.NONE):
    """A batch around these bytes; everything in its header is right."""
    data = build_batch([b""], base_timestamp=NOW)[:61] + payload
    return kit.parsed(
        kit.with_header(
            data,
            batch_length=len(data) - 12,
            attributes=codec,
            last_offset_delta=count - 1,
            record_count=count,
        )
    )


def defect(batch, rules=RULES, now=NOW + 200):
    assert check_batch(batch, 1 << 30) is None
    found = inspect(batch, rules, now)
    return None if isinstance(found, RecordBatch) else found.defect


# ---- structure


def field(data, length=None):
    if length is None:
        return varint(-1) if data is None else varint(len(data)) + data
    return varint(length) + (data or b"")


def record(number=0, *, time=0, key=b"k", value=b"v", headers=b"\0", attributes=0, **lengths):
    """One record; `key_length`, `value_length` and `length` take the place of the true ones."""
    body = bytes([attributes]) + varint(time) + varint(number)
    body += field(key, lengths.get("key_length")) + field(value, lengths.get("value_length"))
    body += headers + lengths.get("behind", b"")
    return varint(lengths.get("length", len(body))) + body


def long_time(digits):
    body = b"\0" + b"\xff" * digits + b"\x01" + varint(0) + b"\1\1\0"
    return varint(len(body)) + body


FOUR = [record(number) for number in range(4)]
# records, count in the header (None: as many), outcome uncompressed, outcome compressed
STRUCTURE = {
    "four": (FOUR, None, OK, OK),
    "one too few": (FOUR, 5, BROKEN, BROKEN),
    "one too many": (FOUR, 3, BROKEN, BROKEN),
    "none": ([], 1, BROKEN, BROKEN),
    "two for one": (FOUR[:2], 1, BROKEN, BROKEN),
    "a zero behind": ([*FOUR, b"\0"], 4, BROKEN, BROKEN),
    "junk behind": ([*FOUR, b"xxxxx"], 4, BROKEN, BROKEN),
    "count of 2^31 - 1": (FOUR, 2**31 - 1, BROKEN, BROKEN),
    "cut off": ([FOUR[0], FOUR[1][:4]], 2, BROKEN, BROKEN),
    "length too long": ([FOUR[0], record(1, length=50)], 2, BROKEN, OK),
    "length too short": ([FOUR[0], record(1, length=3), FOUR[2]], 3, BROKEN, OK),
    "length of a byte more": ([record(behind=b"\0")], 1, BROKEN, BROKEN),
    "length negative": ([record(length=-3)], 1, BROKEN, OK),
    "length 0": ([record(length=0)], 1, BROKEN, OK),
    "attributes": ([record(attributes=255)], 1, OK, OK),
    "numbers 1, 2": ([record(1), record(2)], 2, OK, PLACES),
    "numbers 0, 0": ([record(0), record(0)], 2, OK, PLACES),
    "numbers 1, 0": ([record(1), record(0)], 2, OK, PLACES),
    "numbers 0, 5": ([record(0), record(5)], 2, OK, PLACES),
    "number -1": ([record(-1)], 1, OK, PLACES),
    "key null": ([record(key=None)], 1, OK, OK),
    "value null": ([record(value=None)], 1, OK, OK),
    "key of length -2": ([record(key=b"", key_length=-2)], 1, OK, OK),
    "value of length -7": ([record(value=b"", value_length=-7)], 1, OK, OK),
    "key too long": ([record(key_length=99)], 1, BROKEN, BROKEN),
    "value too long": ([record(value_length=99)], 1, BROKEN, BROKEN),
    "headers -1": ([record(headers=varint(-1))], 1, BROKEN, BROKEN),
    "headers 1000": ([record(headers=varint(1000))], 1, BROKEN, BROKEN),
    "headers missing": ([record(headers=varint(1))], 1, BROKEN, BROKEN),
    "header's name null": ([record(headers=varint(1) + b"\1\0")], 1, BROKEN, BROKEN),
    "header's name empty": ([record(headers=varint(1) + b"\0\0")], 1, OK, OK),
    "header's value null": ([record(headers=varint(1) + b"\2h\1")], 1, OK, OK),
    "header's value -2": ([record(headers=varint(1) + b"\2h\3")], 1, OK, OK),
    "header's name no text": ([record(headers=varint(1) + b"\2\xff\1")], 1, OK, OK),
    "length of 6 bytes": (
        [b"\xff\xff\xff\xff\xff\x01" + record()[1:]],
        1,
        ENDLESS,
        BROKEN,
    ),
    "length of 6 bytes and no more": ([b"\x80" * 5], 1, ENDLESS, BROKEN),
    "time of 11 bytes": ([long_time(10)], 1, BROKEN, BROKEN),
    "time beyond all": ([long_time(9)], 1, LATE, LATE),
    "time below all": ([record(time=-(2**63))], 1, LATE, LATE),
    "time above all": ([record(time=2**63 - 1)], 1, LATE, LATE),
}


@pytest.mark.parametrize("name", STRUCTURE)
@pytest.mark.parametrize("codec", list(Codec))
def test_records_that_are_no_records(name, codec):
    records, count, plain, compressed = STRUCTURE[name]
    batch = framed(
        COMPRESS[codec](b"".join(records)), len(records) if count is None else count, codec
    )
    assert defect(batch) is (compressed if codec else plain)


@pytest.mark.slow
@pytest.mark.parametrize("codec", list(Codec))
@given(
    records=st.lists(
        st.builds(
            NewRecord,
            value=st.none() | st.binary(max_size=200),
            key=st.none() | st.binary(max_size=100),
            headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5))),
            timestamp=st.integers(NOW - 10_000, NOW),
        ),
        min_size=1,
        max_size=80,
    )
)
def test_whatever_a_client_builds_is_stored_as_it_came(codec, records):
    batch = kit.parsed(build_batch(records, codec=codec, base_timestamp=NOW))
    assert inspect(batch, RULES, NOW) is batch


def read_in_full(batch):
    """As `inspect`, by who reads everything of each record."""
    try:
        list(records_of(batch))
    except RecordLengthError:
        return ENDLESS
    except RecordsError:
        return BROKEN
    return OK


@pytest.mark.slow
@example(payload=b"\x80" * 5, count=1, at=0, byte=0x80)
@given(
    payload=st.binary(max_size=12) | st.lists(st.sampled_from([*FOUR, b"\0", b"\1"])).map(b"".join),
    count=st.integers(1, 4),
    at=st.integers(0, 40),
    byte=st.integers(0, 255),
)
def test_the_short_way_finds_what_the_long_way_finds(payload, count, at, byte):
    payload = payload[:at] + bytes([byte]) + payload[at + 1 :]
    batch = framed(payload, count)
    assert defect(batch, RULES, NO_CLOCK) is read_in_full(batch)


SIZES = [*range(70), *range(117, 130), *range(8180, 8196), 1_048_000, 1_048_576, 1_100_000]


@pytest.mark.parametrize("size", SIZES)
def test_a_lone_value_of_any_size_is_known_at_a_glance_and_a_wrong_one_is_not(size):
    rules = RecordRules()
    data = build_batch([b"v" * size], base_timestamp=NOW)
    batch = kit.parsed(data)
    assert rules.trusts(batch, NOW)
    for at in (61, 62, 63, 64, 65, len(data) - 1):
        broken = kit.parsed(kit.with_header(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]))
        assert not rules.trusts(broken, NOW)


# ---- decompression


def damaged(codec):
    """Payloads around four good records, and what becomes of them."""
    good = COMPRESS[codec](b"".join(FOUR))
    yield "good", good, OK
    yield "wrong bytes", b"not compressed at all", STUCK
    yield "cut off", good[:-5], STUCK
    yield "half", good[: len(good) // 2], STUCK
    yield "its magic", good[:4], STUCK
    yield "empty", b"", BROKEN if codec is Codec.ZSTD else STUCK
    yield "nothing inside", COMPRESS[codec](b""), BROKEN
    ignored = codec in {Codec.GZIP, Codec.LZ4}
    yield "junk behind", good + b"junk junk", OK if ignored else STUCK
    twice = {Codec.GZIP: BROKEN, Codec.SNAPPY: STUCK, Codec.LZ4: OK, Codec.ZSTD: BROKEN}
    yield "twice", good + good, twice[codec]


DAMAGED = [
    pytest.param(codec, payload, outcome, id=f"{codec.name}: {name}")
    for codec in list(Codec)[1:]
    for name, payload, outcome in damaged(codec)
]


@pytest.mark.parametrize(("codec", "payload", "outcome"), DAMAGED)
def test_payloads_that_do_not_inflate(codec, payload, outcome):
    assert defect(framed(payload, 4, codec)) is outcome


@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize(("linked", "outcome"), [(False, OK), (True, STUCK)])
def test_lz4_blocks_that_depend_on_each_other_are_not_read(checksum, linked, outcome):
    compressor = cramjam.lz4.Compressor(content_checksum=checksum, block_linked=linked)
    compressor.compress(b"".join(FOUR))
    assert defect(framed(bytes(compressor.finish()), 4, Codec.LZ4)) is outcome


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_what_build_makes_is_what_kafka_reads(codec):
    values = [bytes(100_000), b"v" * 70_000, b""]
    assert defect(kit.parsed(build_batch(values, codec=codec, base_timestamp=NOW))) is OK


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_what_inflates_beyond_the_bound_is_refused(codec):
    batch = kit.parsed(build_batch([bytes(100_000)], codec=codec, base_timestamp=NOW))
    inside = 100_000 + 20
    for room, found in ((inside // MOST_INFLATION + 1, RecordBatch), (1_500, Flaw)):
        assert isinstance(inspect(batch, RULES, NOW, room), found)


# ---- all of them, whatever the header says


def hidden(count, codec=Codec.NONE):
    """A batch whose header hides that its last record is far ahead."""
    records = [NewRecord(b"v", timestamp=NOW)] * (count - 1) + [
        NewRecord(b"v", timestamp=NOW + 2 * HOUR)
    ]
    data = build_batch(records, codec=codec, base_timestamp=NOW)
    return kit.parsed(kit.with_header(data, max_timestamp=NOW))


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 129, 8191, 8192, 8193, 20_000])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_no_record_hides_behind_others(count, codec):
    """Behind the 64th, numbers take two bytes, behind the 8192nd three."""
    assert defect(hidden(count, codec)) is LATE


def test_where_there_is_no_room_for_so_many_records_none_is_looked_at():
    allowance = Allowance(40)
    batch = framed(COMPRESS[Codec.LZ4](b"\0" * 20), 2**31 - 1, Codec.LZ4)
    looking = looked_into(batch, RULES, NOW, max_bytes=1000, allowance=allowance)
    assert verdict(looking) == Flaw(BROKEN)
    assert allowance.left == 40 - 2 * 16, "more than a piece, and the question for another"
