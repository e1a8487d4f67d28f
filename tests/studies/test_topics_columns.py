"""Record batches as Arrow columns: every column, every codec, ranges that cut batches.

Batches are built as producers build them and stamped as a leader stamps them, whatever codec they
have; neither a broker nor Spark is needed.
"""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.build import Codec, NewRecord, build_batch
from ottla.log.errors import RecordsError
from ottla.log.record_batch import read_batch
from ottla.log.types import RecordBatch
from ottla.sim.studies.topics.columns import LATEST, columns, ddl, tables
from ottla.sim.studies.topics.offsets import Placed, Range

ALL = Range("t", 3, 0, 10**9)


def stored(base, values, epoch=7, **fields):
    batch = read_batch(build_batch(values, **fields))
    assert isinstance(batch, RecordBatch)
    batch.stamp(base, epoch)
    return batch


def table(batches, wanted=ALL, rows="records", headers=False):
    layout = columns(rows, headers=headers)
    schema = pa.schema([(name, of_arrow) for name, (_, of_arrow) in layout.items()])
    found = [Placed(0, each) for each in batches]
    return pa.Table.from_batches(tables(found, wanted, rows, headers=headers), schema)


def test_a_record_is_a_row_with_what_only_its_batch_knows():
    record = NewRecord(b"v", b"k", (("h", b"1"), ("h", None)), 1_700_000_000_123)
    idempotent = stored(10, [record, b"w"], producer_id=5, producer_epoch=2, base_sequence=40)
    plain = stored(12, [NewRecord(None, None, (), 5)], epoch=8)
    (first, second, third) = table([idempotent, plain], headers=True).to_pylist()
    assert first["timestamp"].timestamp() == pytest.approx(1_700_000_000.123)
    assert (first["key"], first["value"], first["topic"], first["partition"]) == (
        b"k",
        b"v",
        "t",
        3,
    )
    assert first["headers"] == [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]
    who = ("offset", "producer_id", "producer_epoch", "sequence", "leader_epoch", "timestampType")
    assert [first[name] for name in who] == [10, 5, 2, 40, 7, 0]
    assert [second[name] for name in who] == [11, 5, 2, 41, 7, 0]
    assert [third[name] for name in who] == [12, None, None, None, 8, 0]
    assert third["value"] is None


@pytest.mark.parametrize(
    ("millis", "micros"),
    [
        (-1, None),
        (0, 0),
        (LATEST, 1000 * LATEST),
        (LATEST + 1, None),
        (17 * 10**17, None),  # nanoseconds, where milliseconds are asked for
        (2**63 - 1, None),
    ],
)
def test_a_timestamp_that_no_column_holds_is_none(millis, micros):
    """One such record kept the whole topic from being read."""
    batch = stored(0, [NewRecord(b"v", None, (), millis)])
    found = table([batch]).column("timestamp").cast(pa.int64()).to_pylist()
    assert found == [micros]
    latest = table([batch], rows="batches").column("max_timestamp")
    assert latest.cast(pa.int64()).to_pylist() == [micros]


@pytest.mark.parametrize("codec", Codec)
def test_every_codec_is_read(codec):
    values = [b"%d" % n * 50 for n in range(100)]
    batch = stored(0, values, codec=codec)
    assert table([batch]).column("value").to_pylist() == values
    (row,) = table([batch], rows="batches").to_pylist()
    assert (row["codec"], row["records"], row["bytes"]) == (codec.name.lower(), 100, len(batch))


def test_sequences_wrap_inside_a_batch():
    top = 2**31 - 1
    batch = stored(0, [b"a", b"b", b"c"], producer_id=1, producer_epoch=0, base_sequence=top - 1)
    assert table([batch]).column("sequence").to_pylist() == [top - 1, top, 0]
    (row,) = table([batch], rows="batches").to_pylist()
    assert (row["base_sequence"], row["last_sequence"]) == (top - 1, 0)


def test_marks_of_transactions_are_batches_and_no_records():
    control = stored(1, [b"mark"], producer_id=9, producer_epoch=0, base_sequence=0)
    control.attributes |= 0x30
    batches = [stored(0, [b"v"]), control]
    assert table(batches).column("offset").to_pylist() == [0]
    _, mark = table(batches, rows="batches").to_pylist()
    assert mark["control"]
    assert mark["transactional"]
    assert (mark["producer_id"], mark["base_sequence"], mark["last_sequence"]) == (9, None, None)


def test_a_batch_that_cannot_be_looked_into_is_an_error():
    broken = stored(0, [b"v" * 100])
    broken.data = broken.data[:70]
    with pytest.raises(RecordsError):
        table([broken])
    assert table([broken], rows="batches").num_rows == 1


def test_a_schema_in_sql_names_the_columns():
    assert ddl("records", headers=False).startswith("key BINARY, value BINARY, topic STRING")
    assert "headers" not in ddl("records", headers=False)
    assert "headers ARRAY<STRUCT<key: STRING, value: BINARY>>" in ddl("records", headers=True)
    assert "base_sequence INT, last_sequence INT" in ddl("batches", headers=False)


@pytest.mark.slow
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.sets(st.integers(1, 39)))
def test_rows_do_not_depend_on_how_offsets_are_cut(sizes, cuts):
    """Property: cut anywhere, also inside batches, ranges give each record and batch once."""
    batches, end = [], 0
    for size in sizes:
        batches.append(stored(end, [b"%d" % (end + n) for n in range(size)]))
        end += size
    edges = [0, *sorted(cut for cut in cuts if cut < end), end]
    for rows, place in (("records", "offset"), ("batches", "last_offset")):
        found = []
        for start, stop in pairwise(edges):
            wanted = Range("t", 0, start, stop)
            overlap = [b for b in batches if b.last_offset >= start and b.base_offset < stop]
            found += table(overlap, wanted, rows).column(place).to_pylist()
        whole = table(batches, rows=rows).column(place).to_pylist()
        assert found == whole
        assert len(whole) == (end if rows == "records" else len(batches))
