"""Reading and checking a produced batch: one test per row, the rows' order, and nothing else.

What Kafka answers to each of these batches was measured (K-CHECKS, K-BATCHES); here only the
name of the defect is held. Properties at the end feed damaged and arbitrary bytes.
"""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

import log_kit as kit
from ottla.log.build import NewRecord, build_batch, seal
from ottla.log.record_batch import (
    CONTENT_CHECKS,
    SEQUENCE_MASK,
    STRUCTURAL_CHECKS,
    BatchDefect,
    begins_with_batch,
    check_batch,
    crc_matches,
    first_codec,
    identity,
    read_batch,
    read_beginning,
)
from ottla.log.types import BatchIdentity, RecordBatch
from tidy.citations import names_a_source, page_keys

SOURCES = page_keys()
GOOD = build_batch([b"a", b"b", b"c"], producer_id=7, producer_epoch=1, base_sequence=4)
LIMIT = 1_048_588
LENGTH = len(GOOD) - 12


def with_length(length, data=GOOD):
    return data[:8] + length.to_bytes(4, "big", signed=True) + data[12:]


def with_magic(magic, data=GOOD):
    return data[:16] + bytes([magic % 256]) + data[17:]


STRUCTURAL = [
    (b"", BatchDefect.NO_BATCH),
    (GOOD[:11], BatchDefect.NO_BATCH),
    (GOOD[:12], BatchDefect.NO_BATCH),
    (GOOD[:16], BatchDefect.NO_BATCH),
    (GOOD[:17], BatchDefect.NO_BATCH),
    (GOOD[:-1], BatchDefect.NO_BATCH),
    (with_length(LENGTH + 1), BatchDefect.NO_BATCH),
    (with_length(2**31 - 1), BatchDefect.NO_BATCH),
    (with_length(13), BatchDefect.BAD_LENGTH_FIELD),
    (with_length(0), BatchDefect.BAD_LENGTH_FIELD),
    (with_length(-1), BatchDefect.BAD_LENGTH_FIELD),
    (with_length(13)[:12], BatchDefect.BAD_LENGTH_FIELD),
    (with_length(13, with_magic(9)), BatchDefect.BAD_LENGTH_FIELD),
    (with_magic(3), BatchDefect.UNKNOWN_MAGIC),
    (with_magic(-1), BatchDefect.UNKNOWN_MAGIC),
    (with_magic(3)[:17], BatchDefect.UNKNOWN_MAGIC),
    (with_magic(0), BatchDefect.OLD_MAGIC),
    (with_magic(1), BatchDefect.OLD_MAGIC),
    (with_magic(1)[:-1], BatchDefect.NO_BATCH),
    (with_length(14)[:26], BatchDefect.TOO_SHORT),
    (with_length(14)[:37], BatchDefect.TOO_SHORT),
    (with_length(48)[:60], BatchDefect.TOO_SHORT),
    (with_length(14)[:26] + GOOD, BatchDefect.SEVERAL_BATCHES),
    (with_length(48)[:60] + with_length(13), BatchDefect.MALFORMED_SECOND_BATCH),
    (GOOD + GOOD, BatchDefect.SEVERAL_BATCHES),
    (GOOD + GOOD + b"x", BatchDefect.SEVERAL_BATCHES),
    (GOOD + with_magic(1), BatchDefect.SEVERAL_BATCHES),
    (GOOD + with_length(13), BatchDefect.MALFORMED_SECOND_BATCH),
    (GOOD + with_length(-5)[:12], BatchDefect.MALFORMED_SECOND_BATCH),
    (GOOD + with_magic(5), BatchDefect.MALFORMED_SECOND_BATCH),
    (GOOD + with_magic(5)[:17], BatchDefect.MALFORMED_SECOND_BATCH),
]

CONTENT = [
    ({"base_offset": 1}, BatchDefect.BASE_OFFSET_NOT_ZERO),
    ({"base_offset": -1}, BatchDefect.BASE_OFFSET_NOT_ZERO),
    ({"crc": 1, "sealed": False}, BatchDefect.CRC_MISMATCH),
    ({"producer_id": 8, "sealed": False}, BatchDefect.CRC_MISMATCH),
    ({"attributes": 5}, BatchDefect.UNKNOWN_CODEC),
    ({"attributes": 7}, BatchDefect.UNKNOWN_CODEC),
    ({"last_offset_delta": -1, "record_count": 0}, BatchDefect.NEGATIVE_LAST_OFFSET_DELTA),
    ({"last_offset_delta": -1}, BatchDefect.NEGATIVE_LAST_OFFSET_DELTA),
    ({"record_count": 0}, BatchDefect.NO_RECORDS),
    ({"record_count": -3}, BatchDefect.NO_RECORDS),
    ({"record_count": 2}, BatchDefect.COUNT_MISMATCH),
    ({"last_offset_delta": 3}, BatchDefect.COUNT_MISMATCH),
    ({"last_offset_delta": 2**31 - 1}, BatchDefect.COUNT_MISMATCH),
    ({"attributes": 0x20}, BatchDefect.CONTROL_BATCH),
    ({"base_sequence": -1}, BatchDefect.NO_SEQUENCE),
    ({"base_sequence": -1, "producer_id": 0}, BatchDefect.NO_SEQUENCE),
]

GOOD_HEADERS = [
    {},
    {"producer_id": -1, "base_sequence": -1},
    {"attributes": 0x10},
    {"attributes": 0x08},
    {"attributes": 4},
    {"partition_leader_epoch": 77},
    {"base_sequence": 2**31 - 1},
    {"max_timestamp": -1},
]


def checked(data, limit=LIMIT):
    return check_batch(kit.parsed(data), limit)


@pytest.mark.parametrize(("data", "defect"), STRUCTURAL)
def test_a_structural_defect_is_named(data, defect):
    assert read_batch(data) is defect


@pytest.mark.parametrize(("fields", "defect"), CONTENT)
def test_a_content_defect_is_named(fields, defect):
    assert checked(kit.with_header(GOOD, **fields)) is defect


@pytest.mark.parametrize("fields", GOOD_HEADERS)
def test_a_good_batch_passes(fields):
    assert checked(kit.with_header(GOOD, **fields)) is None


INSIDE = {
    BatchDefect.NOT_INFLATABLE,
    BatchDefect.BROKEN_RECORDS,
    BatchDefect.ENDLESS_LENGTH,
    BatchDefect.BAD_TIMES,
    BatchDefect.WRONG_PLACES,
}
"""Found by who looks at the records: `test_inspection.py`."""


def test_every_defect_has_a_row_and_every_row_a_test():
    rows = [each.defect for each in STRUCTURAL_CHECKS] + [each.defect for each in CONTENT_CHECKS]
    tested = {defect for _, defect in (*STRUCTURAL, *CONTENT)} | {BatchDefect.TOO_LARGE}
    assert set(rows) == set(BatchDefect) - INSIDE == tested
    sources = [each.source for each in STRUCTURAL_CHECKS] + [each.source for each in CONTENT_CHECKS]
    assert all(names_a_source(each, SOURCES) for each in sources)


@pytest.mark.parametrize(
    ("limit", "defect"), [(len(GOOD) - 1, BatchDefect.TOO_LARGE), (len(GOOD), None)]
)
def test_the_limit_is_the_largest_size_allowed(limit, defect):
    assert checked(GOOD, limit) is defect


def test_the_first_failing_row_decides_in_kafkas_order():
    fields = {
        "base_offset": 1,
        "crc": 1,
        "attributes": 0x27,
        "last_offset_delta": -1,
        "record_count": 0,
        "base_sequence": -1,
    }
    repairs = [
        {"base_offset": 0},
        {},
        {},
        {"attributes": 0x20},
        {"last_offset_delta": 0},
        {"record_count": 2},
        {"record_count": 1},
        {"attributes": 0},
        {"base_sequence": 0},
    ]
    seen = [checked(kit.with_header(GOOD, sealed=False, **fields), 10)]
    for step, repair in enumerate(repairs):
        fields |= repair
        repaired = kit.with_header(GOOD, sealed=step >= 2, **fields)
        seen.append(checked(repaired, LIMIT if step >= 1 else 10))
    rows = [check.defect for check in CONTENT_CHECKS if check.defect is not BatchDefect.TOO_SHORT]
    assert seen == [*rows, None]


@pytest.mark.parametrize("length", [14, 15, 30, 48])
@pytest.mark.parametrize("sealed", [True, False])
def test_a_batch_that_ends_inside_its_header_is_judged_by_what_there_is(length, sealed):
    """Kafka looks at base offset and size first, and a CRC that is right does not help."""
    short = with_length(length)[: 12 + length]
    short = seal(short) if sealed and length >= 21 else short
    batch = read_beginning(short + b"stray")
    assert batch.data == short
    assert check_batch(batch, LIMIT) is BatchDefect.TOO_SHORT
    assert check_batch(batch, len(short) - 1) is BatchDefect.TOO_LARGE
    moved = read_beginning(b"\0\0\0\0\0\0\0\1" + short[8:])
    assert check_batch(moved, 1) is BatchDefect.BASE_OFFSET_NOT_ZERO


def test_a_batch_that_ends_inside_its_number_of_records_has_none():
    """Three bytes of it were there and made 256, which agreed with all else."""
    data = kit.with_header(GOOD, batch_length=48, last_offset_delta=255, record_count=256)
    batch = read_beginning(seal(data[:60]))
    assert check_batch(batch, LIMIT) is BatchDefect.TOO_SHORT


@pytest.mark.parametrize("codec", range(8))
@pytest.mark.parametrize("behind", [b"", b"stray", GOOD, with_length(13)])
def test_the_codec_of_the_first_batch_is_known_whatever_lies_behind_it(codec, behind):
    assert first_codec(kit.with_header(GOOD, attributes=codec | 0x30) + behind) == codec


@pytest.mark.parametrize(
    "data", [b"", GOOD[:16], GOOD[:-1], with_magic(1), with_magic(3), with_length(4)]
)
def test_what_is_no_whole_batch_of_version_2_has_no_codec(data):
    assert first_codec(data) is None


@pytest.mark.parametrize(
    "data",
    [GOOD, GOOD + b"stray", GOOD[:-1] + GOOD, with_length(39), with_magic(0), with_magic(1)],
)
def test_a_whole_batch_of_a_version_that_exists_is_a_beginning(data):
    """In version 2 its header goes as far as the producer id, byte 51."""
    assert begins_with_batch(data)


@pytest.mark.parametrize(
    "data", [b"", GOOD[:16], GOOD[:17], GOOD[:-1], with_magic(3), with_magic(255), with_length(38)]
)
def test_what_is_less_is_none(data):
    assert not begins_with_batch(data)


@pytest.mark.parametrize("stray", [b"x", b"x" * 11, GOOD[:-1], GOOD[:16], GOOD[:12]])
def test_stray_bytes_that_are_no_batch_are_trimmed(stray):
    batch = kit.parsed(GOOD + stray)
    assert batch == kit.parsed(GOOD)
    assert check_batch(batch, LIMIT) is None


def test_the_bytes_are_kept_not_copied():
    assert kit.parsed(GOOD).data is GOOD


def test_the_header_is_read_whole():
    records = [NewRecord(b"v", timestamp=20), NewRecord(b"w", timestamp=10)]
    batch = kit.parsed(
        build_batch(
            records,
            producer_id=9,
            producer_epoch=3,
            base_sequence=5,
            base_timestamp=15,
            attributes=16,
        )
    )
    assert (batch.base_offset, batch.leader_epoch, batch.magic) == (0, -1, 2)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 3, 5)
    assert (batch.base_timestamp, batch.max_timestamp) == (15, 20)
    assert (batch.record_count, batch.last_offset_delta, len(batch)) == (2, 1, len(batch.data))
    assert (batch.codec, batch.attributes) == (0, 16)


# ---- the stamp


@given(offset=st.integers(0, 2**63 - 1), epoch=st.integers(0, 2**31 - 1))
def test_a_stamp_lies_outside_the_crc_and_changes_nothing_else(offset, epoch):
    batch = kit.parsed(GOOD)
    batch.stamp(offset, epoch)
    stamped = kit.parsed(batch.stamped())
    assert crc_matches(stamped)
    assert dataclasses.replace(stamped, data=GOOD) == batch
    assert (stamped.base_offset, stamped.leader_epoch) == (offset, epoch)
    assert batch.last_offset == offset + 2
    assert stamped.data[16:] == GOOD[16:]
    assert batch.data is GOOD


# ---- identity


@pytest.mark.parametrize(
    ("first", "count", "last"),
    [
        (0, 1, 0),
        (4, 3, 6),
        (2**31 - 1, 1, 2**31 - 1),
        (2**31 - 1, 2, 0),
        (2**31 - 2, 5, 2),
    ],
)
def test_sequences_wrap_to_zero_inside_a_batch_too(first, count, last):
    data = build_batch([b""] * count, producer_id=3, producer_epoch=2, base_sequence=first)
    assert identity(kit.parsed(data)) == BatchIdentity(3, 2, first, last)


@given(first=st.integers(0, SEQUENCE_MASK), delta=st.integers(0, 2**31 - 1))
def test_the_last_sequence_is_the_first_one_counted_up_one_by_one(first, delta):
    data = kit.with_header(GOOD, base_sequence=first, last_offset_delta=delta)
    found = identity(kit.parsed(data))
    left = 2**31 - 1 - first
    assert found is not None
    assert found.last_sequence == (first + delta if delta <= left else delta - left - 1)


@pytest.mark.parametrize("producer_id", [-1, -2])
def test_a_plain_producers_batch_has_no_identity(producer_id):
    assert identity(kit.parsed(kit.with_header(GOOD, producer_id=producer_id))) is None


# ---- anything at all


@given(st.binary(max_size=200))
def test_any_bytes_give_a_batch_or_a_defect(data):
    assert isinstance(read_batch(data), (RecordBatch, BatchDefect))


@pytest.mark.slow
@given(
    flips=st.lists(
        st.tuples(st.integers(0, len(GOOD) - 1), st.integers(1, 255)), min_size=1, max_size=4
    ),
    tail=st.binary(max_size=30),
)
def test_a_damaged_batch_is_a_batch_or_a_defect_and_never_passes_when_records_changed(flips, tail):
    damaged = bytearray(GOOD)
    for at, mask in flips:
        damaged[at] ^= mask
    found = read_batch(bytes(damaged) + tail)
    if isinstance(found, BatchDefect):
        return
    assert len(found.data) == found.batch_length + 12
    if found.data[21:] != GOOD[21:] and found.crc == kit.parsed(GOOD).crc:
        assert check_batch(found, LIMIT) is not None


@given(
    st.binary(min_size=61, max_size=120).map(
        lambda data: with_magic(2, with_length(len(data) - 12, data))
    )
)
def test_content_checks_never_raise(data):
    found = check_batch(kit.parsed(data), LIMIT)
    assert found is None or found in BatchDefect
