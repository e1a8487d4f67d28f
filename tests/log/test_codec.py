"""Entries as bytes: they come out as they went in, and no damage goes unseen.

Stores and the transport between nodes trust this codec with bytes from a disk or a peer, so every
single flipped bit and every cut must be a `DecodeError`, in the header, the stamp and the records.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import log_kit as kit
from ottla.log.codec import decode_entries, encode_entries
from ottla.log.errors import DecodeError
from ottla.log.keys import LAST_INDEX, chunk_index, chunk_key, pack_checked, unpack_checked
from ottla.raft.types import Entry, EntryKind

INDEXES = st.integers(1, 2**63)
BATCHES = st.builds(
    kit.batch_entry,
    INDEXES,
    st.integers(1, 2**31 - 1),
    st.integers(0, 2**62),
    values=st.lists(st.binary(max_size=30), min_size=1, max_size=4),
)
OTHERS = st.builds(
    Entry,
    INDEXES,
    st.integers(1, 2**62),
    st.sampled_from([EntryKind.EMPTY, EntryKind.CONFIGURATION, EntryKind.COMMAND]),
    st.binary(max_size=300),
)
ENTRIES = st.lists(BATCHES | OTHERS, max_size=5)


@pytest.mark.slow
@given(ENTRIES)
def test_entries_come_out_in_their_order(entries):
    joined = encode_entries(entries)
    assert joined == b"".join(encode_entries([each]) for each in entries)
    assert list(map(kit.visible, decode_entries(joined))) == list(map(kit.visible, entries))


@given(entry=BATCHES | OTHERS, data=st.data())
def test_every_flipped_bit_is_seen(entry, data):
    encoded = bytearray(encode_entries([entry]))
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DecodeError):
        list(decode_entries(bytes(encoded)))


@pytest.mark.slow
@given(entry=BATCHES | OTHERS, data=st.data())
def test_every_cut_is_seen(entry, data):
    encoded = encode_entries([entry])
    with pytest.raises(DecodeError):
        list(decode_entries(encoded[: data.draw(st.integers(1, len(encoded) - 1))]))


@pytest.mark.slow
@given(entry=BATCHES | OTHERS, more=st.binary(min_size=1, max_size=5))
def test_bytes_behind_an_entry_are_seen(entry, more):
    with pytest.raises(DecodeError):
        list(decode_entries(encode_entries([entry]) + more))


@given(st.binary(min_size=1, max_size=100))
def test_anything_else_is_a_decode_error(data):
    with pytest.raises(DecodeError):
        list(decode_entries(data))


def test_entries_before_the_damage_come_out():
    joined = bytearray(encode_entries(kit.run_of(1, 3)))
    joined[-1] ^= 1
    decoded = decode_entries(bytes(joined))
    assert [next(decoded).index, next(decoded).index] == [1, 2]
    with pytest.raises(DecodeError, match="index 3"):
        next(decoded)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)), min_size=2))
def test_chunk_keys_sort_as_groups_and_indexes_do(places):
    assert sorted(chunk_key(*place) for place in places) == [
        chunk_key(*place) for place in sorted(places)
    ]
    for group, index in places:
        assert chunk_index(chunk_key(group, index), group) == index
        assert chunk_index(chunk_key(group, index), group ^ 1) is None
        assert chunk_key(group, index) <= chunk_key(group, LAST_INDEX)


@given(value=st.tuples(st.integers(0, 9), st.binary(max_size=9)), data=st.data())
def test_a_checked_value_is_whole_or_refused(value, data):
    packed = bytearray(pack_checked(value))
    assert unpack_checked(bytes(packed), 2) == list(value)
    with pytest.raises(DecodeError):
        unpack_checked(bytes(packed), 3)
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1
    with pytest.raises(DecodeError):
        unpack_checked(bytes(packed), 2)
    with pytest.raises(DecodeError):
        unpack_checked(bytes(packed[:3]), 2)
