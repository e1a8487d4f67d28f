"""`check_batch` looks once at a good batch and goes through the table for others: one answer."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.build import build_batch
from ottla.log.record_batch import CONTENT_CHECKS, check_batch, identity, read_batch
from ottla.log.types import RecordBatch


def made() -> RecordBatch:
    batch = read_batch(build_batch([b"a", b"b"], producer_id=7, producer_epoch=0, base_sequence=3))
    assert isinstance(batch, RecordBatch), f"built a batch with a defect: {batch}"
    return batch


GOOD = made()

CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "base_offset": st.sampled_from([-1, 0, 5]),
        "attributes": st.integers(0, 0x3F),
        "last_offset_delta": st.integers(-1, 2),
        "record_count": st.integers(-1, 3),
        "producer_id": st.sampled_from([-1, 0, 7]),
        "base_sequence": st.sampled_from([-1, 0, 3]),
        "crc": st.sampled_from([GOOD.crc, 0]),
    },
)


@pytest.mark.slow
@given(CHANGES, st.sampled_from([10, 1_000]))
def test_one_look_says_what_the_table_says(changes, max_bytes):
    batch = replace(GOOD, **changes)
    by_table = next(
        (check.defect for check in CONTENT_CHECKS if check.fails(batch, max_bytes)), None
    )
    assert check_batch(batch, max_bytes) is by_table


def test_a_changed_copy_has_an_identity_of_its_own():
    assert identity(GOOD) == (7, 0, 3, 4)
    assert identity(replace(GOOD, base_sequence=4)) == (7, 0, 4, 5)
